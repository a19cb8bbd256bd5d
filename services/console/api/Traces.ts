/** `/api/traces`: traces of single requests, if the console keeps traces. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { StoredSpan } from "./StoredSpan.ts"
import { Admin } from "./Admin.ts"
import { maxIdLength, NotFound, withMessage } from "./Errors.ts"

/** Names of span attributes. */
export { name as attribute } from "../../../shared/telemetry/Attributes.ts"

export type SpanView = StoredSpan

export class TraceUnknown extends Schema.TaggedError<TraceUnknown>()(
  "TraceUnknown",
  withMessage("Trace not found: the id is unknown, or the trace was evicted"),
  { httpApiStatus: 404 }
) {}

/** The services send their traces to a collector instead. */
export class TracesElsewhere extends Schema.TaggedError<TracesElsewhere>()(
  "TracesElsewhere",
  withMessage("This console keeps no traces. Look for the trace in your collector"),
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
      "Get the spans of a request by its x-request-id or usage event id, or of a trace by its trace id"
    )
  )
  .middleware(Admin)
{}
