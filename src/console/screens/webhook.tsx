// The organization's webhook: its address, the state of its deliveries, and its secret.

import { useState } from 'preact/hooks';
import { type AnswerOf, call, curlCommand } from '../api.ts';
import { relativeTime, whole } from '../logic/format.ts';
import { DialogForm, SecretOnce } from '../parts/dialog-form.tsx';
import { Badge, Stat, Stats } from '../parts/figures.tsx';
import { Confirm, FormRefusal, TextField, useSubmit } from '../parts/form.tsx';
import { Empty, Loaded } from '../parts/loaded.tsx';
import { ActionButton, Card, Page } from '../parts/page.tsx';
import { now } from '../state/clock.ts';
import { useRead } from '../state/load.ts';

const PATH = '/v1/admin/active-org/webhook';
type Hook = AnswerOf<typeof PATH>['data'];

export function Webhook() {
  const load = useRead(PATH);
  const [open, setOpen] = useState<'set' | 'remove' | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  const isUnset = load.refusal?.status === 404;
  const shown = ({ data }: { readonly data: { readonly secret: string | null } }) => {
    setOpen(null);
    setSecret(data.secret);
    load.reload();
  };
  return (
    <Page
      title="Webhook"
      lead="Signed messages tell your server of each final charge, and of own provider keys that a provider refuses."
      tools={
        <ActionButton
          isMain={isUnset}
          name={isUnset ? 'Set the address' : 'Change the address'}
          onClick={() => setOpen('set')}
        />
      }
      commands={[curlCommand(PATH), curlCommand(PATH, { body: { url: 'https://example.com/tollgate' } }, 'put')]}
    >
      {isUnset ? (
        <Card>
          <Empty>No webhook. Set an address, and each final charge is posted to it with its record.</Empty>
        </Card>
      ) : (
        <Loaded load={load} permission="org.admin">
          {({ data }) => (
            <State hook={data} onRemove={() => setOpen('remove')} onRotated={shown} reload={load.reload} />
          )}
        </Loaded>
      )}
      {open === 'set' && <SetAddress url={load.data?.data.url ?? ''} onDone={shown} onClose={() => setOpen(null)} />}
      {open === 'remove' && (
        <Confirm
          title="Remove?"
          verb="Remove"
          send={() => call('delete', PATH)}
          onDone={load.reload}
          onClose={() => setOpen(null)}
        >
          Your server gets no more messages, and those that are waiting are dropped.
        </Confirm>
      )}
      {secret !== null && <SecretOnce title="The webhook’s secret" secret={secret} onClose={() => setSecret(null)} />}
    </Page>
  );
}

interface StateProps {
  readonly hook: Hook;
  readonly onRemove: () => void;
  readonly onRotated: (answer: { readonly data: { readonly secret: string | null } }) => void;
  readonly reload: () => void;
}

function State({ hook, onRemove, onRotated, reload }: StateProps) {
  const rotation = useSubmit<AnswerOf<`${typeof PATH}/rotate-secret`, 'post'>>(onRotated);
  const delivery = useSubmit<unknown>(reload);
  const isBusy = rotation.isBusy || delivery.isBusy;
  const tried = now.value.getTime();
  return (
    <>
      <Stats>
        <Stat name="Last delivered" value={relativeTime(hook.last_success_at, tried)} />
        <Stat name="Waiting" value={whole(hook.waiting)} />
        <Stat name="Given up" value={whole(hook.dead)} tone={hook.dead > 0 ? 'bad' : undefined} />
        <Stat name="Last failure" value={relativeTime(hook.last_error_at, tried)} note={hook.last_error ?? ' '} />
      </Stats>
      <Card
        title="Address"
        tools={<Badge tone={hook.active ? 'good' : 'plain'}>{hook.active ? 'active' : 'paused'}</Badge>}
      >
        <p class="sample">{hook.url}</p>
        <FormRefusal refusal={rotation.refusal ?? delivery.refusal} />
        <footer class="dialog-foot">
          <button
            type="button"
            disabled={isBusy}
            onClick={() => void rotation.run(() => call('post', `${PATH}/rotate-secret`))}
          >
            New secret
          </button>
          <button
            type="button"
            disabled={isBusy}
            onClick={() => void delivery.run(() => call('post', `${PATH}/redeliver`))}
          >
            Deliver again
          </button>
          <button type="button" class="danger" onClick={onRemove}>
            Remove
          </button>
        </footer>
      </Card>
    </>
  );
}

interface AddressProps {
  readonly url: string;
  readonly onDone: (answer: { readonly data: { readonly secret: string | null } }) => void;
  readonly onClose: () => void;
}

function SetAddress({ url: known, onDone, onClose }: AddressProps) {
  const [url, setUrl] = useState(known);
  const send = () => call('put', PATH, { body: { url: url.trim() } });
  return (
    <DialogForm title="Webhook" verb="Save" send={send} onDone={onDone} onClose={onClose}>
      <TextField
        label="Address"
        type="url"
        value={url}
        onValue={setUrl}
        isRequired
        placeholder="https://example.com/tollgate"
      />
    </DialogForm>
  );
}
