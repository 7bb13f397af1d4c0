// Shows how a draft of a routing policy would route one message.

import { useState } from 'preact/hooks';
import { type AnswerOf, call } from '../../api.ts';
import { spaced } from '../../logic/format.ts';
import { FormRefusal, useSubmit } from '../../parts/form.tsx';
import { Card } from '../../parts/page.tsx';
import { type Column, Table } from '../../parts/table.tsx';
import { useDraft } from '../../state/drafts.ts';
import type { RoutingDefinition as Definition } from '../../state/policies.ts';
import { autoModel, organizationId } from '../../state/session.ts';

type Preview = AnswerOf<'/v1/admin/routing/preview', 'post'>;

export function PolicyPreview({ definition }: { readonly definition: Definition | null }) {
  const [text, setText] = useState('');
  const [seen, setSeen] = useState<{ readonly text: string; readonly preview: Preview['data'] } | null>(null);
  const { isBusy, refusal, run } = useSubmit<Preview>(({ data }) => setSeen({ text, preview: data }));
  useDraft(text !== '' && text !== seen?.text);
  const shown = organizationId();
  const send = (policy: Definition, organization: string) =>
    call('post', '/v1/admin/routing/preview', {
      body: {
        organization_id: organization,
        api: 'chat_completions',
        body: JSON.stringify({ model: autoModel(), messages: [{ role: 'user', content: text }] }),
        policy,
      },
    });
  return (
    <Card
      title="Preview"
      note="How the draft would route one message. The service calls and pays the classifier; no model answers."
    >
      {shown === null ? (
        <p class="empty">Choose an organization above: the message is routed for it.</p>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (definition !== null) void run(() => send(definition, shown));
          }}
        >
          <label>
            <span class="unseen">A message</span>
            <textarea
              rows={3}
              value={text}
              placeholder="A message, as somebody would write it"
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
          <div class="filters try">
            <button type="submit" disabled={isBusy || text.trim() === '' || definition === null}>
              Preview
            </button>
          </div>
        </form>
      )}
      <FormRefusal refusal={refusal} />
      {seen !== null && <Seen preview={seen.preview} />}
    </Card>
  );
}

function Seen({ preview }: { readonly preview: Preview['data'] }) {
  const columns: Column<Preview['data']['candidates'][number]>[] = [
    { name: 'Tier', raw: ({ tier }) => tier },
    { name: 'Model', raw: ({ model }) => model },
    {
      name: 'Could serve',
      raw: ({ rejection }) => rejection,
      show: ({ rejection }) => (rejection === null ? 'yes' : spaced(rejection)),
    },
  ];
  return (
    <div aria-live="polite">
      <p>
        {preview.outcome === 'routed' ? 'It would be served by ' : `It would be ${preview.outcome}.`}
        {preview.model !== null && <strong>{preview.model}</strong>}
      </p>
      <Table caption="Candidates" columns={columns} rows={preview.candidates} />
    </div>
  );
}
