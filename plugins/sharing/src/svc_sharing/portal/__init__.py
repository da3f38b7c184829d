"""The pages of sharing in the portal: what is shared with the reader; and for root shares and links."""
