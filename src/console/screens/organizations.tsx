// The organizations of the platform: creating and freezing them, their wallets, and adding credit.

import { useState } from 'preact/hooks';
import { type AnswerOf, call, curlCommand } from '../api.ts';
import { dollars } from '../logic/format.ts';
import { DialogForm, type DialogHandlers } from '../parts/dialog-form.tsx';
import { Badge } from '../parts/figures.tsx';
import { Confirm, NAME_HINT, SelectField, TextField } from '../parts/form.tsx';
import { Link } from '../parts/link.tsx';
import { ManagedList } from '../parts/managed-list.tsx';
import { ActionButton, Page } from '../parts/page.tsx';
import { type Column, momentColumn, numberColumn } from '../parts/table.tsx';
import { params } from '../state/address.ts';
import { useRead } from '../state/load.ts';
import { usePages } from '../state/pages.ts';

const PATH = '/v1/admin/organizations';
type Organization = AnswerOf<typeof PATH>['data'][number];
type Wallet = AnswerOf<'/v1/admin/organizations/{organizationId}/wallets'>['data'][number];

const COLUMNS: readonly Column<Organization>[] = [
  {
    name: 'Organization',
    raw: ({ display_name: name }) => name,
    show: ({ id, slug, display_name: name }) => (
      <>
        <Link to="organizations" params={{ id }}>
          {name}
        </Link>
        <span class="note">{slug}</span>
      </>
    ),
  },
  {
    name: 'Billing',
    raw: ({ billing }) => billing,
    show: ({ billing }) => (billing === 'none' ? 'not billed' : billing),
  },
  {
    name: 'State',
    raw: ({ frozen }) => String(frozen),
    show: ({ frozen }) => (frozen ? <Badge tone="bad">frozen</Badge> : <Badge tone="good">open</Badge>),
  },
  momentColumn('Since', ({ created_at: at }) => at),
];

export function Organizations() {
  const load = usePages<Organization>(PATH, { limit: 100 });
  const [open, setOpen] = useState<'new' | Organization | null>(null);
  const id = params.value['id'];
  const done = () => {
    setOpen(null);
    load.reload();
  };
  const [frozen, setFrozen] = useState<Organization | null>(null);
  return (
    <Page
      title="Organizations"
      lead="Who is served and who pays. A frozen organization keeps its credit, and its requests are refused."
      tools={<ActionButton isMain name="New organization" onClick={() => setOpen('new')} />}
      commands={[
        curlCommand(PATH),
        curlCommand(
          '/v1/billing/deposits',
          { body: { organization_id: id ?? 'ID', amount: '100.00', reference: 'invoice 7' } },
          'post',
        ),
        'tollgate org list',
        'tollgate wallet list --organization SLUG',
      ]}
    >
      <ManagedList
        title="Organizations"
        load={load}
        rowsOf={({ data }) => data}
        columns={COLUMNS}
        permission="platform.admin"
        empty="No organization yet."
        actions={(organization) => (
          <>
            {organization.billing === 'prepaid' && (
              <button type="button" class="small" onClick={() => setOpen(organization)}>
                Add credit
              </button>
            )}
            <button type="button" class="small" onClick={() => setFrozen(organization)}>
              {organization.frozen ? 'Thaw' : 'Freeze'}
            </button>
          </>
        )}
      />
      {frozen !== null && <Freeze of={frozen} onDone={load.reload} onClose={() => setFrozen(null)} />}
      {id !== undefined && <Wallets organizationId={id} />}
      {open === 'new' && <NewOrganization onDone={done} onClose={() => setOpen(null)} />}
      {open !== null && open !== 'new' && <AddCredit of={open} onDone={done} onClose={() => setOpen(null)} />}
    </Page>
  );
}

interface OrganizationDialogProps extends DialogHandlers {
  readonly of: Organization;
}

function Freeze({ of: { id: organizationId, display_name: name, frozen }, onDone, onClose }: OrganizationDialogProps) {
  const verb = frozen ? 'Thaw' : 'Freeze';
  const send = () =>
    call('patch', `${PATH}/{organizationId}`, { pathParameters: { organizationId }, body: { frozen: !frozen } });
  return (
    <Confirm title={`${verb}?`} verb={verb} send={send} onDone={onDone} onClose={onClose}>
      <bdi>{name}</bdi> {frozen ? 'is served again.' : 'is not served until it is thawed.'}
    </Confirm>
  );
}

const WALLET_COLUMNS: readonly Column<Wallet>[] = [
  { name: 'Wallet of', raw: ({ user_id: user }) => user, show: ({ user_id: user }) => user ?? 'the organization' },
  {
    name: 'Balance',
    raw: ({ balance }) => balance,
    show: ({ balance }) => dollars(balance, { exact: true }),
    isNumber: true,
  },
  numberColumn('Held', ({ held }) => held, dollars),
  numberColumn('Lent', ({ lent }) => lent, dollars, { isExtra: true }),
  numberColumn('Available', ({ available }) => available, dollars),
];

function Wallets({ organizationId }: { readonly organizationId: string }) {
  const load = useRead('/v1/admin/organizations/{organizationId}/wallets', { pathParameters: { organizationId } });
  return (
    <ManagedList
      title="Wallets"
      note={organizationId}
      load={load}
      rowsOf={({ data }) => data}
      columns={WALLET_COLUMNS}
      permission="platform.admin"
      empty="An organization that is not billed has no wallet."
    />
  );
}

function NewOrganization({ onDone, onClose }: DialogHandlers) {
  const [slug, setSlug] = useState('');
  const [name, setName] = useState('');
  const [owner, setOwner] = useState('');
  const [billing, setBilling] = useState<'prepaid' | 'none'>('prepaid');
  const body = {
    slug: slug.trim(),
    billing,
    ...(name.trim() === '' ? {} : { display_name: name.trim() }),
    ...(owner.trim() === '' ? {} : { owner_email: owner.trim() }),
  };
  return (
    <DialogForm
      title="New organization"
      verb="Create"
      send={() => call('post', PATH, { body })}
      onDone={onDone}
      onClose={onClose}
    >
      <TextField label="Slug" value={slug} onValue={setSlug} isRequired hint={NAME_HINT} />
      <TextField label="Name" value={name} onValue={setName} />
      <TextField label="First owner’s e-mail" type="email" value={owner} onValue={setOwner} />
      <SelectField
        label="Billing"
        value={billing}
        onValue={(to) => setBilling(to as 'prepaid' | 'none')}
        options={[
          { id: 'prepaid', name: 'Prepaid credit' },
          { id: 'none', name: 'Not billed' },
        ]}
      />
    </DialogForm>
  );
}

function AddCredit({ of: { id, display_name: name }, onDone, onClose }: OrganizationDialogProps) {
  const [amount, setAmount] = useState('');
  const [reference, setReference] = useState('');
  const body = { organization_id: id, amount: amount.trim(), reference: reference.trim() };
  return (
    <DialogForm
      title={`Credit for ${name}`}
      verb="Add credit"
      send={() => call('post', '/v1/billing/deposits', { body })}
      onDone={onDone}
      onClose={onClose}
    >
      <TextField label="Dollars" value={amount} onValue={setAmount} isRequired placeholder="100.00" />
      <TextField
        label="Reference"
        value={reference}
        onValue={setReference}
        isRequired
        hint="The number of an invoice or a transfer. A reference is credited only once."
      />
    </DialogForm>
  );
}
