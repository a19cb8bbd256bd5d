/**
 * The accounts of a NATS server as its configuration says them: the gateway's, with a user for each service and no more
 * rights for it than `Access.ts` lists, and the server's own for monitoring.
 */
import { type NatsService, permissionsOf } from "../../shared/bus/Access.ts"

/** The public keys of each service: more than one while a key is being changed. */
export type PublicKeys = ReadonlyMap<NatsService, ReadonlyArray<string>>

/** The account that all of the gateway is in. Autoscaling and dashboards name it. */
export const accountName = "GATEWAY"

const list = (subjects: ReadonlyArray<string>, indent: string): string =>
  `[\n${subjects.map((subject) => `${indent}  "${subject}"`).join("\n")}\n${indent}]`

const user = (service: NatsService, key: string): string => {
  const { answers, publish, subscribe } = permissionsOf(service)
  return `      # ${service}
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

/** For `include` in the configuration of a server. Public keys are no secret. */
export const renderAccounts = (keys: PublicKeys): string =>
  `# Made by \`admin nats keys\`: not to be edited.
accounts {
  ${accountName} {
    jetstream: enabled
    users = [
${[...keys].flatMap(([service, its]) => its.map((key) => user(service, key))).join("\n")}
    ]
  }
  SYS {}
}
system_account: SYS
`
