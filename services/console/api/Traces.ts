/** `/api/traces`: what happened to one request on its way, where the console keeps that. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { StoredSpan } from "../../../shared/telemetry/StoredSpan.ts"
import { Admin } from "./Admin.ts"
import { maxIdLength, NotFound, saying } from "./Errors.ts"

/** What the attributes of spans are called. */
export { name as attribute } from "../../../shared/telemetry/Attributes.ts"

export type SpanView = StoredSpan

export class TraceUnknown extends Schema.TaggedError<TraceUnknown>()(
  "TraceUnknown",
  saying("No trace is known by this id, or not any more"),
  { httpApiStatus: 404 }
) {}

/** The services send their traces to a collector. */
export class TracesElsewhere extends Schema.TaggedError<TracesElsewhere>()(
  "TracesElsewhere",
  saying("This console keeps no traces: a collector does"),
  { httpApiStatus: 404 }
) {}

export class TracesApi extends HttpApiGroup.make("traces")
  .add(
    HttpApiEndpoint.get("find", "/api/traces/:id", {
      params: { id: Schema.String.check(Schema.isMaxLength(maxIdLength)) },
      success: Schema.Array(StoredSpan),
      error: [TraceUnknown, TracesElsewhere, NotFound]
    }).annotate(
      OpenApi.Summary,
      "The spans of a request, by its x-request-id or the id of its usage event, or of a whole trace by its id"
    )
  )
  .middleware(Admin)
{}
