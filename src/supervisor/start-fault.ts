// Why an installation cannot start or a command cannot do its work, in the operator's terms: printed as it stands,
// without a stack.

export class StartFault extends Error {
  override readonly name = 'StartFault';
}
