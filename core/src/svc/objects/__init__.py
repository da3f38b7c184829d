"""Objects: content-addressed values between the tree above and the log below.

File bytes, directory nodes and file records flow in and get an identity, a codec and a place in the
log; a hash flows in and verified bytes flow out. The key index maps hashes to places.
"""
