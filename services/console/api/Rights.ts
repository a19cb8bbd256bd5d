/** Authorization as one table: what each role may do at each endpoint of the admin API. */
import type { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import type { ConsoleApi } from "./Api.ts"
import type { Role } from "./Role.ts"

/** `teams`: what belongs to the person's teams and the teams below. The handler must narrow itself to `CurrentScope`. */
type Extent = "all" | "teams" | "none"

/** An administrator may do everything. */
type Right = Readonly<Record<Exclude<Role, "admin">, Extent>>

/** For everyone who has signed in, because it concerns only themselves. */
const own = { auditor: "all", member: "all" } as const satisfies Right
const read = { auditor: "all", member: "none" } as const satisfies Right
/** Reads what belongs to teams. */
const readTeams = { auditor: "all", member: "teams" } as const satisfies Right
/** Changes what belongs to teams. */
const changeTeams = { auditor: "none", member: "teams" } as const satisfies Right
const administer = { auditor: "none", member: "none" } as const satisfies Right

export type Groups = typeof ConsoleApi extends { readonly groups: Readonly<Record<string, infer Group>> } ? Group
  : never
/** The endpoints of a group that require a session. */
type Endpoints<Name extends Groups["identifier"]> = Exclude<
  HttpApiEndpoint.Identifier<HttpApiGroup.Endpoints<HttpApiGroup.WithIdentifier<Groups, Name>>>,
  Name extends "session" ? "signIn" | "ways" : never
>

export const rights = {
  session: { current: own, signOut: own },
  keys: {
    list: readTeams,
    create: changeTeams,
    edit: changeTeams,
    revoke: changeTeams,
    principals: read,
    changes: readTeams
  },
  teams: {
    list: readTeams,
    create: administer,
    get: readTeams,
    edit: administer,
    remove: administer
  },
  webhooks: {
    get: readTeams,
    set: changeTeams,
    remove: changeTeams,
    rotate: changeTeams,
    deliveries: readTeams,
    resend: changeTeams
  },
  teamWebhooks: {
    get: read,
    set: administer,
    remove: administer,
    rotate: administer,
    deliveries: read,
    resend: administer
  },
  tasks: { list: readTeams, get: readTeams, cancel: changeTeams, remove: changeTeams },
  usage: { query: readTeams, csv: readTeams, requests: readTeams },
  traces: { find: readTeams },
  fleet: { catalogue: read, live: read }
} as const satisfies { readonly [Name in Groups["identifier"]]: { readonly [Endpoint in Endpoints<Name>]: Right } }

/** What a role may do at an endpoint. An endpoint without a row is for administrators. */
export const extentOf = (role: Role, group: string, endpoint: string): Extent => {
  if (role === "admin") return "all"
  const rows: Readonly<Record<string, Readonly<Record<string, Right>>>> = rights
  const row = Object.hasOwn(rows, group) ? rows[group] : undefined
  return row !== undefined && Object.hasOwn(row, endpoint) ? row[endpoint]?.[role] ?? "none" : "none"
}
