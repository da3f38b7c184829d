"""What streams and webhooks deliver, against a model: what happened, and who may see it at that moment.

Random changes of files and of rights meet readers of several kinds. The model of rights is that of
``authorization_model``. ``SVC_TEST_MODEL_SCALE`` looks further.
"""
