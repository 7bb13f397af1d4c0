-- A continuation of a response that belongs to somebody else is refused; one of a response that nobody here made is the provider's to judge.
-- Telling them apart asks for an id whoever's it is.
CREATE INDEX saved_responses_response_id ON saved_responses (response_id);
