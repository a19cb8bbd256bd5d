/** What people may do in the console, by role. `Rights.ts` says what that means for each endpoint. */
import { Schema } from "effect"

/** From most to least powerful. A person with groups of several roles gets the first of them. */
export const roles = ["admin", "auditor", "member"] as const

/** `admin` may do everything, `auditor` may read everything, `member` belongs to teams. */
export const Role = Schema.Literals(roles)
export type Role = typeof Role.Type

export const Person = Schema.Struct({
  /** Shown in the audit log. The provider vouches for it; with the admin token, people type it themselves. */
  name: Schema.String,
  role: Role,
  /** Names or ids of the teams of a member; empty for other roles. */
  teams: Schema.Array(Schema.String)
})
export type Person = typeof Person.Type
