/** `/api/usage` and `/api/requests`: usage totals, and the latest requests. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { UsageEvent } from "../../../shared/usage/UsageEvent.ts"
import { UsageQuery, UsageRow } from "../../../shared/usage/UsageTable.ts"
import { Admin } from "./Admin.ts"
import { Unavailable } from "./Errors.ts"

export class UsageApi extends HttpApiGroup.make("usage")
  .add(
    HttpApiEndpoint.get("query", "/api/usage", {
      query: UsageQuery,
      success: Schema.Array(UsageRow),
      error: Unavailable
    }).annotate(OpenApi.Summary, "Get usage grouped by key, team, model, operation or day, or several of these"),
    HttpApiEndpoint.get("csv", "/api/usage.csv", {
      query: UsageQuery,
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/csv" })),
      error: Unavailable
    }).annotate(OpenApi.Summary, "Get the same usage as a CSV file"),
    HttpApiEndpoint.get("requests", "/api/requests", { success: Schema.Array(UsageEvent), error: Unavailable })
      .annotate(OpenApi.Summary, "List the latest completed requests, newest first")
  )
  .middleware(Admin)
{}
