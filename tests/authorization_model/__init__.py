"""Who may do what, against a model of the specification's rules: each decision, and what every route answers.

Random trees with a history meet random grants and keys. The model shares no code with the product.
``SVC_TEST_AUTHORIZATION_SCALE=25`` makes it a million decisions, a hundred trees that are read and ten
thousand writes; ``SVC_TEST_AUTHORIZATION_SEED`` gives the decisions another seed.
"""
