-- Name of the guardrail's rule that acted on the request or its reply (spec 7.7). null: none did.
ALTER TABLE generations ADD COLUMN guardrail text;
