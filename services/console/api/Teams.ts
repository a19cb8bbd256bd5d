/** `/api/teams`: the trees of organisations and teams that share limits and budgets. */
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { TeamId } from "../../../shared/keys/KeySettings.ts"
import { TeamChanges, TeamSettings } from "../../../shared/teams/TeamSettings.ts"
import { Admin } from "./Admin.ts"
import { FieldRefused, NotFound, Unavailable, withMessage } from "./Errors.ts"

export class TeamUnknown extends Schema.TaggedError<TeamUnknown>()("TeamUnknown", {
  ...withMessage("Team not found: it does not exist or was deleted"),
  id: Schema.String
}, { httpApiStatus: 404 }) {}

/** The team is not empty, so it cannot be deleted. */
export class TeamNotEmpty extends Schema.TaggedError<TeamNotEmpty>()("TeamNotEmpty", {
  message: Schema.String,
  teams: Schema.Int,
  keys: Schema.Int
}, { httpApiStatus: 409 }) {}

const TeamRecord = Schema.Struct({
  id: TeamId,
  createdAt: Schema.DateTimeUtcFromString,
  editedAt: Schema.NullOr(Schema.DateTimeUtcFromString),
  ...TeamSettings.fields
})

export const TeamView = Schema.Struct({
  ...TeamRecord.fields,
  /** The number of its keys, without those of teams below. */
  keys: Schema.Int,
  /** Requests of all keys below, since the start of the calendar month (UTC). */
  requestsThisMonth: Schema.Finite,
  spentThisMonthUsd: Schema.Finite
})
export type TeamView = typeof TeamView.Type

const byId = { params: { id: TeamId } }
const error = [TeamUnknown, NotFound, Unavailable] as const

const path = "/api/teams/:id"

export class TeamsApi extends HttpApiGroup.make("teams")
  .add(
    HttpApiEndpoint.get("list", "/api/teams", { success: Schema.Array(TeamView), error: Unavailable })
      .annotate(OpenApi.Summary, "List teams with the usage and the cost of all keys below them"),
    HttpApiEndpoint.post("create", "/api/teams", {
      payload: TeamSettings,
      success: TeamRecord.pipe(HttpApiSchema.status(201)),
      error: [FieldRefused, Unavailable]
    }).annotate(OpenApi.Summary, "Create a team, on its own or below another"),
    HttpApiEndpoint.get("get", path, { ...byId, success: TeamView, error })
      .annotate(OpenApi.Summary, "Get a team with the usage and the cost of all keys below it"),
    HttpApiEndpoint.patch("edit", path, {
      ...byId,
      payload: TeamChanges,
      success: TeamRecord,
      error: [...error, FieldRefused]
    }).annotate(OpenApi.Summary, "Change settings of a team. Every process applies the change within a second"),
    HttpApiEndpoint.delete("remove", path, { ...byId, error: [...error, TeamNotEmpty] })
      .annotate(OpenApi.Summary, "Delete a team that has neither teams nor keys, and its webhook")
  )
  .middleware(Admin)
  // rejects unknown fields: a misspelt limit must not create a team without that limit
  .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" })
{}
