// Shows what a configuration file would change in the catalog. The gateway compares the file and does not store it.

import { useState } from 'preact/hooks';
import { type AnswerOf, call } from '../../api.ts';
import { spaced } from '../../logic/format.ts';
import { Badge, type Tone } from '../../parts/figures.tsx';
import { FormRefusal, useSubmit } from '../../parts/form.tsx';
import { Card } from '../../parts/page.tsx';
import { type Column, NamedCell, Table } from '../../parts/table.tsx';
import { useDraft } from '../../state/drafts.ts';

type Checked = AnswerOf<'/v1/admin/catalog/check', 'post'>['data'];
type Difference = Checked['differences'][number];

const TONES: Readonly<Record<Difference['change'], Tone>> = { added: 'good', changed: 'warn', removed: 'bad' };

const COLUMNS: readonly Column<Difference>[] = [
  {
    name: 'What',
    raw: ({ kind, id }) => `${kind} ${id}`,
    show: ({ kind, id }) => <NamedCell note={spaced(kind)}>{id}</NamedCell>,
  },
  {
    name: 'Change',
    raw: ({ change }) => change,
    show: ({ change }) => <Badge tone={TONES[change]}>{change}</Badge>,
  },
  {
    name: 'Fields',
    raw: ({ lines }) => lines.join('; '),
    show: ({ lines }) => (
      <ul class="plain mono">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    ),
  },
];

export function CatalogCheck() {
  const [text, setText] = useState('');
  const [withRemoved, setWithRemoved] = useState(false);
  const [checked, setChecked] = useState<{ readonly text: string; readonly found: Checked } | null>(null);
  const { isBusy, refusal, run } = useSubmit<{ readonly data: Checked }>(({ data }) =>
    setChecked({ text, found: data }),
  );
  useDraft(text !== '' && text !== checked?.text);
  const body = { configuration: text, prune: withRemoved };
  return (
    <Card
      title="Check a file"
      note="What its providers, models and policies would change. Nothing is changed or stored; keys are not needed."
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => call('post', '/v1/admin/catalog/check', { body }));
        }}
      >
        <div class="field">
          <label for="checked-file">Configuration file</label>
          <textarea
            id="checked-file"
            class="definition"
            rows={6}
            value={text}
            spellcheck={false}
            placeholder={'providers:\n  - { id: openai, preset: openai, api_key: "${OPENAI_API_KEY}" }'}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </div>
        <div class="filters try">
          <input
            type="file"
            accept=".yaml,.yml"
            aria-label="Choose a file"
            onChange={(event) => void event.currentTarget.files?.[0]?.text().then(setText)}
          />
          <label class="inline">
            <input
              type="checkbox"
              checked={withRemoved}
              onChange={(event) => setWithRemoved(event.currentTarget.checked)}
            />
            Also what the file no longer lists
          </label>
          <button type="submit" disabled={isBusy || text.trim() === ''}>
            Compare
          </button>
        </div>
      </form>
      <FormRefusal refusal={refusal} />
      {checked !== null && <Found checked={checked.found} />}
    </Card>
  );
}

function Found({ checked }: { readonly checked: Checked }) {
  const { mistakes, differences, warnings, variables } = checked;
  return (
    <div aria-live="polite">
      {mistakes.length > 0 && <Lines lines={mistakes} />}
      {mistakes.length === 0 && differences.length === 0 && <p>The catalog matches the file.</p>}
      {differences.length > 0 && <Table caption="Differences" columns={COLUMNS} rows={differences} />}
      {warnings.length > 0 && <Lines lines={warnings} />}
      {variables.length > 0 && <p class="note">A placeholder stands for the values of: {variables.join(', ')}</p>}
    </div>
  );
}

function Lines({ lines }: { readonly lines: readonly string[] }) {
  return (
    <ul class="plain refused">
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}
