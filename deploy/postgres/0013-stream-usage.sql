-- stream_usage: request (DESIGN 3): Chat Completions streams of this offer ask for their usage, and the chunk that tells it is kept from the client.
-- null: a stream is asked and relayed as it is.
ALTER TABLE served_by ADD COLUMN stream_usage text CHECK (stream_usage = 'request');
