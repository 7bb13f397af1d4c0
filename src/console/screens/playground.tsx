// The playground: sends one request to a model or to auto routing, and shows the reply with its model, times and cost.

import { useEffect, useRef, useState } from 'preact/hooks';
import { curlCommand, type Refusal } from '../api.ts';
import { dollars, duration, spaced, whole } from '../logic/format.ts';
import { Badge } from '../parts/figures.tsx';
import { FormRefusal, TextField } from '../parts/form.tsx';
import { Link } from '../parts/link.tsx';
import { type Model, ModelChoice, WithModels } from '../parts/model-choice.tsx';
import { Card, Page } from '../parts/page.tsx';
import { useDraft } from '../state/drafts.ts';
import { ask, bodyOf, type GenerationRecord, type Prompt, type Reply, recordOf } from '../state/playground.ts';
import { autoModel, may, me } from '../state/session.ts';

const MAX_TOKENS = 1024;
const NOT_ENOUGH_CREDIT = 402;

export function Playground() {
  const [prompt, setPrompt] = useState<Prompt>({ model: autoModel(), system: '', text: '', maxTokens: MAX_TOKENS });
  return (
    <Page
      title="Playground"
      lead="A real request: it is charged, limited, screened and recorded like any other, with the tag “playground”."
      commands={[curlCommand('/v1/chat/completions', { body: bodyOf(prompt) }, 'post')]}
    >
      <WithModels>{(models) => <Conversation models={models} prompt={prompt} onPrompt={setPrompt} />}</WithModels>
    </Page>
  );
}

interface ConversationProps {
  readonly models: readonly Model[];
  readonly prompt: Prompt;
  readonly onPrompt: (prompt: Prompt) => void;
}

function Conversation({ models, prompt, onPrompt }: ConversationProps) {
  const { isBusy, sent, reply, record, refusal, send, stop } = useAsk();
  const typed = prompt.system + prompt.text;
  useDraft(typed !== '' && typed !== sent);
  const change = (part: Partial<Prompt>) => onPrompt({ ...prompt, ...part });
  const isReady = prompt.text.trim() !== '' && prompt.maxTokens >= 1;
  return (
    <div class="grid">
      <Card title="Request">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (isReady) void send(prompt);
          }}
        >
          <ModelChoice
            models={models}
            api="chat_completions"
            value={prompt.model}
            onValue={(model) => change({ model })}
          />
          <TextField label="Instructions" value={prompt.system} onValue={(system) => change({ system })} />
          <div class="field">
            <label for="playground-text">Message</label>
            <textarea
              id="playground-text"
              rows={8}
              value={prompt.text}
              placeholder="Ask something"
              onInput={(event) => change({ text: event.currentTarget.value })}
              onKeyDown={(event) => {
                if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && isReady) void send(prompt);
              }}
            />
          </div>
          <TextField
            label="Maximum tokens"
            type="number"
            value={String(prompt.maxTokens)}
            onValue={(value) => change({ maxTokens: Math.trunc(Number(value)) })}
          />
          <div class="tools">
            <button type="submit" class="main" disabled={isBusy || !isReady}>
              Send
            </button>
            {isBusy && (
              <button type="button" onClick={stop}>
                Stop
              </button>
            )}
            <span class="note">Ctrl+Enter sends, too.</span>
          </div>
        </form>
      </Card>
      <Card title="Reply">
        <FormRefusal refusal={refusal} />
        {refusal?.status === NOT_ENOUGH_CREDIT && !may('org.admin') && <OwnWalletTooEmpty />}
        {reply === null && refusal === null && <p class="empty">What the model says appears here.</p>}
        {reply !== null && <ReplyView reply={reply} record={record} isBusy={isBusy} />}
      </Card>
    </div>
  );
}

/** The organization pays for requests of its administrators. Every other member pays from an own wallet. */
function OwnWalletTooEmpty() {
  const { organization, user } = me() ?? {};
  return (
    <p class="note">
      Your own wallet in {organization?.display_name} pays for what you ask here, and holds too little for this request.
      Whoever runs this installation can add credit to it:{' '}
      <code>
        tollgate credit add --organization {organization?.slug} --user {user?.email} --amount 10.00 --reference first
      </code>
      . A request with fewer maximum tokens needs less.
    </p>
  );
}

interface ReplyViewProps {
  readonly reply: Reply;
  readonly record: GenerationRecord | null;
  readonly isBusy: boolean;
}

function ReplyView({ reply, record, isBusy }: ReplyViewProps) {
  const { text, executionId, model, firstByteMs, wholeMs, problem } = reply;
  return (
    <>
      <p class="sample" aria-live="polite" aria-busy={isBusy}>
        {text}
      </p>
      {problem !== null && (
        <p class="refused" role="status">
          {problem}
        </p>
      )}
      <dl class="facts">
        <dt>Served by</dt>
        <dd>{model}</dd>
        <dt>First byte</dt>
        <dd>{duration(firstByteMs)}</dd>
        <dt>Total time</dt>
        <dd>{duration(wholeMs)}</dd>
        {record !== null && (
          <>
            <dt>Tokens</dt>
            <dd>
              {whole(record.native_tokens_prompt)} in, {whole(record.native_tokens_completion)} out
            </dd>
            <dt>Cost</dt>
            <dd>
              {dollars(record.total_cost, { exact: true })} <Badge>{spaced(record.billing_status)}</Badge>
            </dd>
          </>
        )}
      </dl>
      {executionId !== null && wholeMs !== null && (
        <p>
          <Link to="requests" params={{ request: executionId }}>
            Its record, and why this model served
          </Link>
        </p>
      )}
    </>
  );
}

/** Sends one request at a time. Leaving the screen aborts it. */
function useAsk() {
  const [isBusy, setBusy] = useState(false);
  /** The instructions and the text that were answered last. */
  const [sent, setSent] = useState('');
  const [reply, setReply] = useState<Reply | null>(null);
  const [record, setRecord] = useState<GenerationRecord | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const asking = useRef<AbortController | null>(null);
  useEffect(() => () => asking.current?.abort(), []);
  const send = async (prompt: Prompt) => {
    if (isBusy) return;
    const controller = new AbortController();
    asking.current = controller;
    setBusy(true);
    setReply(null);
    setRecord(null);
    setRefusal(null);
    let last: Reply | null = null;
    const refused = await ask(
      prompt,
      (next) => {
        last = next;
        setReply(next);
      },
      controller.signal,
    );
    if (refused === null) setSent(prompt.system + prompt.text);
    setRefusal(refused);
    setBusy(false);
    const id = (last as Reply | null)?.executionId ?? null;
    if (id === null) return;
    const found = await recordOf(id);
    if (asking.current === controller) setRecord(found);
  };
  return { isBusy, sent, reply, record, refusal, send, stop: () => asking.current?.abort() };
}
