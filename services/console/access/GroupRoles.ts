/** The roles of the groups that an OpenID provider reports. */
import { Effect, Option, Schema } from "effect"
import { parse as parseYaml } from "yaml"
import * as SchemaErrors from "../../../shared/contract/SchemaErrors.ts"
import { type Person, roles } from "../api/Role.ts"

/** Names or ids of teams. */
const Teams = Schema.Union([Schema.NonEmptyString, Schema.NonEmptyArray(Schema.NonEmptyString)])

const GroupRoles = Schema.Record(
  Schema.String,
  Schema.Union([Schema.Literals(["admin", "auditor"]), Schema.Struct({ member: Teams })])
).check(Schema.isMinProperties(1))
/** `{ operators: admin, security: auditor, research: { member: Research } }` */
export type GroupRoles = typeof GroupRoles.Type

const decode = Schema.decodeUnknownEffect(GroupRoles, { errors: "all", onExcessProperty: "error" })

const example =
  "it must be YAML or JSON such as { operators: admin, security: auditor, research: { member: Research } }"

/** Decodes the setting. Fails with a description of what is wrong. */
export const parse = (text: string): Effect.Effect<GroupRoles, string> =>
  Effect.try({ try: (): unknown => parseYaml(text), catch: () => `is not readable: ${example}` }).pipe(
    Effect.flatMap((value) =>
      Effect.mapError(decode(value), ({ issue }) => {
        const [mistake] = SchemaErrors.all(issue, undefined)
        return mistake === undefined ? example : `${SchemaErrors.formatError(mistake, "the value")}; ${example}`
      })
    )
  )

/** A person's role and teams; none if no group has a role. */
export const personOf = (
  groupRoles: GroupRoles,
  groups: ReadonlyArray<string>
): Option.Option<Pick<Person, "role" | "teams">> => {
  const given = groups.flatMap((group) => Object.hasOwn(groupRoles, group) ? [groupRoles[group]] : [])
  const teams = given.flatMap((role) => typeof role === "object" ? role.member : [])
  const role = roles.find((role) => role === "member" ? teams.length > 0 : given.includes(role))
  return role === undefined
    ? Option.none()
    : Option.some({ role, teams: role === "member" ? [...new Set(teams)] : [] })
}
