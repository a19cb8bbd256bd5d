/**
 * The accounts of a NATS server as its configuration says them: the gateway's two, with a user for each service that is in
 * them and no more rights for it than `Access.ts` lists, and the server's own for monitoring.
 */
import { type Identity, permissionsOf } from "../../shared/bus/provision/Access.ts"
import { type Account, accounts } from "../../shared/nats/Storage.ts"

/** The public keys of each identity: more than one while a key is being changed. */
export type PublicKeys = ReadonlyMap<Identity, ReadonlyArray<string>>

/** What the accounts are called. Autoscaling and dashboards name that of the jobs. */
export const accountNames: Readonly<Record<Account, string>> = { data: "GATEWAY", control: "GATEWAY_CONTROL" }

export interface AccountOptions {
  /** Whether processes of the version that knew one account are still in use: see `formerRights` in `Access.ts`. */
  readonly withFormer: boolean
}

const list = (subjects: ReadonlyArray<string>, indent: string): string =>
  `[\n${subjects.map((subject) => `${indent}  "${subject}"`).join("\n")}\n${indent}]`

const user = (identity: Identity, key: string, options: AccountOptions): string => {
  const { answers, publish, subscribe } = permissionsOf(identity, options)
  return `      # ${identity.name}
      {
        nkey: ${key}
        permissions {
          publish { allow: ${list(publish, "          ")} }
          subscribe { allow: ${list(subscribe, "          ")} }${
    answers ?
      `
          allow_responses { max: 1, expires: "10s" }` :
      ""
  }
        }
      }`
}

const account = (account: Account, keys: PublicKeys, options: AccountOptions): string => {
  const users = [...keys].filter(([identity]) => identity.account === account)
    .flatMap(([identity, its]) => its.map((key) => user(identity, key, options)))
  return `  ${accountNames[account]} {
    jetstream: enabled
    users = [
${users.join("\n")}
    ]
  }`
}

/** For `include` in the configuration of a server. Public keys are no secret. */
export const renderAccounts = (keys: PublicKeys, options: AccountOptions): string =>
  `# Made by \`admin nats keys\`: not to be edited.
accounts {
${accounts.map((one) => account(one, keys, options)).join("\n")}
  SYS {}
}
system_account: SYS
`
