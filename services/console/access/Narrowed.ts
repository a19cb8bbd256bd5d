/** Implements the groups of the admin API. Where the rights limit members to a scope, a handler that ignores it does not compile. */
import type { Effect } from "effect"
import type { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import type { CurrentScope } from "../api/Admin.ts"
import type { Groups, rights } from "../api/Rights.ts"

type EndpointsOf<Group extends string> = HttpApiGroup.WithIdentifier<Groups, Group>["endpoints"]

type Handlers<All extends Record<string, HttpApiEndpoint.Constraint>> = {
  readonly [Name in keyof All]: HttpApiEndpoint.Handler<All[Name], HttpApiEndpoint.MiddlewareError<All[Name]>, unknown>
}

/** Whether a handler reads the scope: its effect requires it. */
type ReadsScope<Handler> = Handler extends (...request: infer _) => Effect.Effect<unknown, unknown, infer R>
  ? CurrentScope extends R ? true : false
  : false

/** `unknown` for correct handlers; a compiler error for others. */
type Narrowed<Rows, Given> = {
  readonly [Name in keyof Given]: Name extends keyof Rows
    ? Rows[Name] extends { readonly member: "teams" }
      ? ReadsScope<Given[Name]> extends true ? unknown : "members may see their teams only: read CurrentScope"
    : unknown
    : unknown
}

/** Adds the handlers of a group. */
export const handleAll = <
  Group extends keyof typeof rights,
  const Given extends Handlers<EndpointsOf<Group>>
>(
  _group: Group,
  handlers: HttpApiBuilder.Handlers<never, EndpointsOf<Group>>,
  given: Given & Narrowed<typeof rights[Group], Given>
) => handlers.handleAll<Given>(given as never)
