-- Classifiers for installations without an evaluation provider (spec 4.11).

-- via: logprobs: an evaluation model that is a chat model underneath. Routing asks it by log-probabilities; on /v1/systemone it is not served.
ALTER TABLE served_by ADD COLUMN via text CHECK (via = 'logprobs');

-- none: a server, mostly on the same machine, that wants no credential; what is sealed is then empty.
ALTER TABLE providers DROP CONSTRAINT providers_auth_check;
ALTER TABLE providers ADD CONSTRAINT providers_auth_check CHECK (auth IN ('bearer', 'x-api-key', 'none'));
