// Which replies mean that a provider does not accept the service's key: the providers' own words, and what must not be
// taken for them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { keyRefusalOf } from '../../src/upstream/key-complaint.ts';

const google = (code: number, message: string, reason: string): object => ({
  error: {
    code,
    message,
    status: 'X',
    details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'googleapis.com' }],
  },
});

const REFUSED: Readonly<Record<string, readonly [number, unknown]>> = {
  'any 401': [401, {}],
  'Gemini: not valid': [400, google(400, 'API key not valid. Please pass a valid API key.', 'API_KEY_INVALID')],
  'Gemini: not found': [
    400,
    { error: { code: 400, message: 'API Key not found. Please pass a valid API key.', status: 'INVALID_ARGUMENT' } },
  ],
  'Gemini: expired, in a list as its OpenAI endpoint has it': [
    400,
    [google(400, 'API key expired. Please renew the API key.', 'API_KEY_INVALID')],
  ],
  'Gemini: suspended': [
    403,
    google(403, "Permission denied: Consumer 'api_key:AIza-secret' has been suspended.", 'CONSUMER_SUSPENDED'),
  ],
  'Gemini: leaked': [
    403,
    {
      error: {
        code: 403,
        message: 'Your API key was reported as leaked. Please use another API key.',
        status: 'PERMISSION_DENIED',
      },
    },
  ],
  'Gemini: blocked for this API': [403, google(403, 'Requests to this API are blocked.', 'API_KEY_SERVICE_BLOCKED')],
  'xAI: incorrect': [
    400,
    {
      code: 'Client specified an invalid argument',
      error: 'Incorrect API key provided: sk***YA. You can obtain one from the console.',
    },
  ],
  'Anthropic: not permitted': [
    403,
    { type: 'error', error: { type: 'permission_error', message: 'Your API key does not have permission.' } },
  ],
  'OpenAI: a project without the model': [
    403,
    { error: { message: 'Project `proj_x` does not have access to model `m`', code: 'model_not_found' } },
  ],
  'any 402: the account behind the key is out of credit': [402, { error: { message: 'Insufficient Balance' } }],
  'Anthropic: disabled': [
    400,
    { type: 'error', error: { type: 'invalid_request_error', message: 'This organization has been disabled.' } },
  ],
  'Anthropic: out of credit': [
    400,
    {
      error: { type: 'invalid_request_error', message: 'Your credit balance is too low to access the Anthropic API.' },
    },
  ],
  'OpenRouter: the limit of the key': [
    403,
    { error: { message: 'Key limit exceeded (total limit). Manage it using the console', code: 403 } },
  ],
  'Azure: closed to this network': [
    403,
    { error: { code: '403', message: 'Public access is disabled. Please configure private endpoint.' } },
  ],
  'Vertex AI: not permitted': [
    403,
    [google(403, "Permission 'aiplatform.endpoints.predict' denied on resource 'x'.", 'IAM_PERMISSION_DENIED')],
  ],
  'AWS: a bearer': [403, { Message: 'Authentication failed: Please make sure your API Key is valid.' }],
  'AWS: a token': [403, { message: 'The security token included in the request is invalid.' }],
  'AWS: a role': [
    403,
    { Message: 'User: arn:aws:iam::123456789012:user/x is not authorized to perform: bedrock:InvokeModel' },
  ],
  'a message without an error': [403, { message: 'Invalid API key' }],
};

const OTHERS: Readonly<Record<string, readonly [number, unknown]>> = {
  'a 400 about a field': [
    400,
    {
      error: { message: "Invalid value: 'max_tokens'", type: 'invalid_request_error', param: 'max_tokens', code: null },
    },
  ],
  'a 400 that quotes a prompt': [
    400,
    { error: { message: "Invalid content: 'API key not valid'", code: 'invalid_value' } },
  ],
  'a 400 with the words in another field': [
    400,
    { error: { message: 'no', param: 'API_KEY_INVALID' }, API_KEY_INVALID: 'API_KEY_INVALID' },
  ],
  'a 403 of a content filter': [
    403,
    { code: 'The caller does not have permission', error: 'Content violates usage guidelines.' },
  ],
  'a 403 of a moderation': [
    403,
    { error: { code: 403, message: 'Your chosen model requires moderation', metadata: { reasons: ['x'] } } },
  ],
  'a 404 that says so': [404, google(404, 'API key not valid', 'API_KEY_INVALID')],
  'a 429 that says so': [429, google(429, 'API key not valid', 'API_KEY_INVALID')],
  null: [400, null],
  'a number': [403, 5],
};

describe('a refused key', () => {
  for (const [name, [status, body]] of Object.entries(REFUSED)) {
    test(name, () => assert.notEqual(keyRefusalOf(status, Buffer.from(JSON.stringify(body))), null));
  }
});

describe('no refused key', () => {
  for (const [name, [status, body]] of Object.entries(OTHERS)) {
    test(name, () => assert.equal(keyRefusalOf(status, Buffer.from(JSON.stringify(body))), null));
  }

  test('what is no JSON, or too long to be a complaint', () => {
    for (const body of ['', 'API key not valid', '{"error":{"message":"API key not valid"', '<html>'])
      assert.equal(keyRefusalOf(400, Buffer.from(body)), null);
    const long = { error: { message: 'API key not valid', more: 'x'.repeat(16_384) } };
    assert.equal(keyRefusalOf(400, Buffer.from(JSON.stringify(long))), null);
  });
});
