/** The admin API. The server, the web app's client and the OpenAPI document are derived from it. */
import { HttpApi, HttpApiMiddleware, OpenApi } from "effect/http-api"
import { FleetApi } from "./Fleet.ts"
import { KeysApi } from "./Keys.ts"
import { SessionApi } from "./Session.ts"
import { TasksApi } from "./Tasks.ts"
import { TeamsApi } from "./Teams.ts"
import { TracesApi } from "./Traces.ts"
import { UsageApi } from "./Usage.ts"
import { TeamWebhooksApi, WebhooksApi } from "./Webhooks.ts"

export class ConsoleApi extends HttpApi.make("console")
  .add(SessionApi, KeysApi, TeamsApi, WebhooksApi, TeamWebhooksApi, TasksApi, UsageApi, TracesApi, FleetApi)
  .middleware(HttpApiMiddleware.ProblemDetails)
  .annotate(OpenApi.Title, "Model Gateway: admin API")
  .annotate(OpenApi.Version, "1")
{}
