// The members of the organization and its teams.

import { useState } from 'preact/hooks';
import { type AnswerOf, call, curlCommand } from '../api.ts';
import { quoted } from '../logic/format.ts';
import { DialogForm, type DialogHandlers } from '../parts/dialog-form.tsx';
import { NAME_HINT, SelectField, TextField } from '../parts/form.tsx';
import { Link } from '../parts/link.tsx';
import { ManagedList, type Removal } from '../parts/managed-list.tsx';
import { ActionButton, Page } from '../parts/page.tsx';
import { type Column, momentColumn, NamedCell } from '../parts/table.tsx';
import { usePages } from '../state/pages.ts';
import { me, tollgateCommands } from '../state/session.ts';

type Member = AnswerOf<'/v1/admin/active-org/members'>['data'][number];
type Team = AnswerOf<'/v1/admin/active-org/teams'>['data'][number];
type Role = Member['role'];
const ROLES: readonly Role[] = ['member', 'admin', 'owner'];
const PAGE = { limit: 100 };

const MEMBER_COLUMNS: readonly Column<Member>[] = [
  { name: 'Person', raw: ({ email }) => email, show: ({ email }) => <NamedCell>{email}</NamedCell> },
  { name: 'Role', raw: ({ role }) => role },
  momentColumn('Since', ({ created_at: at }) => at),
];
const TEAM_COLUMNS: readonly Column<Team>[] = [
  {
    name: 'Team',
    raw: ({ display_name: name }) => name,
    show: ({ display_name: name }) => <NamedCell>{name}</NamedCell>,
  },
  { name: 'Slug', raw: ({ slug }) => slug, show: ({ slug }) => <code>{slug}</code> },
  momentColumn('Since', ({ created_at: at }) => at),
];

const MEMBER_REMOVAL: Removal<Member> = {
  verb: 'Remove',
  ask: ({ email }) => `${email} is removed from the organization, and this person’s keys in it are revoked.`,
  send: ({ user_id: userId }) =>
    call('delete', '/v1/admin/active-org/members/{userId}', { pathParameters: { userId } }),
  isFor: ({ user_id: userId }) => userId !== me()?.user?.id,
};

type Open =
  | { readonly kind: 'member' }
  | { readonly kind: 'role'; readonly of: Member }
  | { readonly kind: 'team' }
  | null;

export function People() {
  const members = usePages<Member>('/v1/admin/active-org/members', PAGE);
  const teams = usePages<Team>('/v1/admin/active-org/teams', PAGE);
  const [open, setOpen] = useState<Open>(null);
  const close = () => setOpen(null);
  const done = () => {
    close();
    members.reload();
    teams.reload();
  };
  return (
    <Page
      title="Members and teams"
      lead="Owners and administrators manage the organization. Members send requests and see their own usage."
      commands={[
        curlCommand('/v1/admin/active-org/members'),
        curlCommand('/v1/admin/active-org/teams'),
        ...tollgateCommands('member list', 'team list'),
      ]}
    >
      <ManagedList
        title="Members"
        tools={<ActionButton name="Add a member" onClick={() => setOpen({ kind: 'member' })} />}
        load={members}
        rowsOf={({ data }) => data}
        columns={MEMBER_COLUMNS}
        permission="org.admin"
        empty="No member yet."
        actions={(member) => (
          <>
            <Link to="limits" params={{ of: `member:${member.user_id}` }}>
              Limits
            </Link>
            <button type="button" class="small" onClick={() => setOpen({ kind: 'role', of: member })}>
              Change role
            </button>
          </>
        )}
        removal={MEMBER_REMOVAL}
      />
      <ManagedList
        title="Teams"
        tools={<ActionButton name="New team" onClick={() => setOpen({ kind: 'team' })} />}
        load={teams}
        rowsOf={({ data }) => data}
        columns={TEAM_COLUMNS}
        permission="org.admin"
        actions={({ id }) => (
          <Link to="limits" params={{ of: `team:${id}` }}>
            Limits
          </Link>
        )}
        empty={<p>No team yet. A team has its own keys, limits and reports.</p>}
        removal={{
          verb: 'Delete',
          ask: ({ display_name: name }) => `${quoted(name)} is deleted. Its keys have to be revoked first.`,
          send: ({ id }) => call('delete', '/v1/admin/active-org/teams/{teamId}', { pathParameters: { teamId: id } }),
        }}
      />
      {open?.kind === 'member' && <NewMember onDone={done} onClose={close} />}
      {open?.kind === 'role' && <MemberRole of={open.of} onDone={done} onClose={close} />}
      {open?.kind === 'team' && <NewTeam onDone={done} onClose={close} />}
    </Page>
  );
}

function NewMember({ onDone, onClose }: DialogHandlers) {
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<Role>('member');
  const send = () => call('post', '/v1/admin/active-org/members', { body: { email: email.trim(), role } });
  return (
    <DialogForm title="Add a member" verb="Add" send={send} onDone={onDone} onClose={onClose}>
      <TextField label="E-mail" type="email" value={email} onValue={setEmail} isRequired />
      <SelectField label="Role" value={role} onValue={(to) => setRole(to as Role)} options={ROLES} />
    </DialogForm>
  );
}

function MemberRole({ of: member, onDone, onClose }: DialogHandlers & { readonly of: Member }) {
  const [role, setRole] = useState<Role>(member.role);
  const send = () =>
    call('patch', '/v1/admin/active-org/members/{userId}', {
      pathParameters: { userId: member.user_id },
      body: { role },
    });
  return (
    <DialogForm title={member.email} verb="Save" send={send} onDone={onDone} onClose={onClose}>
      <SelectField label="Role" value={role} onValue={(to) => setRole(to as Role)} options={ROLES} />
    </DialogForm>
  );
}

function NewTeam({ onDone, onClose }: DialogHandlers) {
  const [slug, setSlug] = useState('');
  const [name, setName] = useState('');
  const body = { slug: slug.trim(), ...(name.trim() === '' ? {} : { display_name: name.trim() }) };
  const send = () => call('post', '/v1/admin/active-org/teams', { body });
  return (
    <DialogForm title="New team" verb="Create" send={send} onDone={onDone} onClose={onClose}>
      <TextField label="Slug" value={slug} onValue={setSlug} isRequired hint={NAME_HINT} />
      <TextField label="Name" value={name} onValue={setName} />
    </DialogForm>
  );
}
