"""Objects: content-addressed values between the tree above and the log below.

File bytes, directory nodes and file records get an identity, a codec and a place in the log; reads verify.
"""
