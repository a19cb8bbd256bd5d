/** The OpenAPI document of the HTTP API, derived from the list of operations and the other routes. */
import * as BatchRoutes from "./BatchRoutes.ts"
import * as Errors from "./Errors.ts"
import * as FileRoutes from "./FileRoutes.ts"
import * as Headers from "./Headers.ts"
import * as OperationRoutes from "./OperationRoutes.ts"
import * as OtherRoutes from "./OtherRoutes.ts"
import * as ResponseRoutes from "./ResponseRoutes.ts"
import * as TaskRoutes from "./TaskRoutes.ts"
import { securitySchemes, tags, toOperation } from "./Route.ts"
import * as Schemas from "./Schemas.ts"

const byPath = Map.groupBy(
  [
    ...OperationRoutes.routes,
    ...ResponseRoutes.routes,
    ...TaskRoutes.routes,
    ...FileRoutes.routes,
    ...BatchRoutes.routes,
    ...OtherRoutes.routes
  ],
  ({ path }) => path
)

const paths = Object.fromEntries(
  [...byPath].map(([path, routes]) => [
    path,
    Object.fromEntries(routes.map((route) => [route.method, toOperation(route)]))
  ])
)

const description = `One HTTP API in front of every kind of model provider.

Send an API key of the gateway as \`Authorization: Bearer <key>\`. The gateway forwards fields that are not described here
to the model's provider. Optional fields may be \`null\`.

Errors have the format of the route's official client and always contain \`error.message\` and \`error.type\`.
\`retry-after\` gives the time to wait before the next try.`

export const document = {
  openapi: "3.1.0",
  info: {
    title: "Model Gateway",
    version: "1",
    summary: "One HTTP API in front of every kind of model provider.",
    description,
    contact: { name: "The operator of this gateway" },
    license: { name: "Apache-2.0", identifier: "Apache-2.0" }
  },
  servers: [{ url: "/", description: "This gateway" }],
  tags,
  security: [{ bearer: [] }],
  paths,
  components: {
    schemas: Schemas.components({
      ...OperationRoutes.schemas,
      ...ResponseRoutes.schemas,
      ...TaskRoutes.schemas,
      ...FileRoutes.schemas,
      ...BatchRoutes.schemas,
      ...OtherRoutes.schemas,
      ...Errors.schemas
    }),
    headers: Headers.components,
    securitySchemes
  }
}
