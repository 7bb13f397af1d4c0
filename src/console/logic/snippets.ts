// Settings that point clients to this gateway. docs/clients.md has the same.

export interface Snippet {
  readonly name: string;
  readonly note: string;
  readonly code: string;
}

export function snippetsFor(origin: string, model: string): readonly Snippet[] {
  return [
    {
      name: 'curl',
      note: 'For a shell.',
      code: `curl -N ${origin}/v1/chat/completions \\
  -H "Authorization: Bearer $TOLLGATE_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"model":"${model}","stream":true,"messages":[{"role":"user","content":"Hello"}]}'`,
    },
    {
      name: 'OpenAI SDK',
      note: 'Python. In TypeScript the options are baseURL and apiKey.',
      code: `import os
from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=os.environ["TOLLGATE_KEY"])
print(client.responses.create(model="${model}", input="Hello").output_text)`,
    },
    {
      name: 'Claude Code',
      note: 'Claude Code adds /v1 to the address.',
      code: `export ANTHROPIC_BASE_URL=${origin}
export ANTHROPIC_AUTH_TOKEN=$TOLLGATE_KEY
export ANTHROPIC_MODEL=${model}
claude`,
    },
    {
      name: 'Codex',
      note: '~/.codex/config.toml',
      code: `model = "${model}"
model_provider = "tollgate"

[model_providers.tollgate]
name = "Tollgate"
base_url = "${origin}/v1"
env_key = "TOLLGATE_KEY"
wire_api = "responses"`,
    },
  ];
}
