/** Reference of the admin API, rendered from its OpenAPI document. */
import { Accordion, Anchor, Badge, Box, Group, Stack, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { Schema } from "effect"
import { CodeBlock } from "../parts/Copy.tsx"
import { Loaded } from "../parts/Feedback.tsx"
import { Card, Page } from "../parts/Page.tsx"

const Body = Schema.Struct({
  content: Schema.optionalKey(Schema.Record(Schema.String, Schema.Struct({ schema: Schema.Unknown })))
})

const Endpoint = Schema.Struct({
  summary: Schema.optionalKey(Schema.String),
  parameters: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({ name: Schema.String, in: Schema.String, required: Schema.optionalKey(Schema.Boolean) })
    )
  ),
  requestBody: Schema.optionalKey(Body),
  responses: Schema.Record(
    Schema.String,
    Schema.Struct({ description: Schema.optionalKey(Schema.String), ...Body.fields })
  )
})

const Document = Schema.Struct({
  paths: Schema.Record(Schema.String, Schema.Record(Schema.String, Endpoint)),
  components: Schema.Struct({ schemas: Schema.Record(Schema.String, Schema.Unknown) })
})
type Document = typeof Document.Type

const decode = Schema.decodeUnknownPromise(Document)

const address = "/api/openapi.json"

const useDocument = () =>
  useQuery({
    queryKey: ["openapi"],
    queryFn: async ({ signal }) => decode(await (await fetch(address, { signal })).json()),
    staleTime: Number.POSITIVE_INFINITY
  })

const colors: Record<string, string> = { get: "teal", post: "iris", patch: "orange", delete: "red" }

type Schemas = Document["components"]["schemas"]

/** Resolves references, up to a few levels deep. */
const resolved = (schema: unknown, schemas: Schemas, depth = 0): unknown => {
  if (typeof schema !== "object" || schema === null) return schema
  if (Array.isArray(schema)) return schema.map((item) => resolved(item, schemas, depth))
  if ("$ref" in schema && typeof schema.$ref === "string") {
    const name = schema.$ref.split("/").at(-1) ?? ""
    return depth > 4 ? name : resolved(schemas[name], schemas, depth + 1)
  }
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, resolved(value, schemas, depth)]))
}

const schemaText = ({ content }: typeof Body.Type, schemas: Schemas): string | undefined => {
  const [type, body] = Object.entries(content ?? {})[0] ?? []
  if (type === undefined || body === undefined) return undefined
  return type.includes("json") ? JSON.stringify(resolved(body.schema, schemas), null, 2) : type
}

const Operation = ({ method, of, path, schemas }: {
  readonly path: string
  readonly method: string
  readonly of: typeof Endpoint.Type
  readonly schemas: Schemas
}) => {
  const parameters = (of.parameters ?? []).filter((parameter) => parameter.in !== "cookie")
  const request = of.requestBody === undefined ? undefined : schemaText(of.requestBody, schemas)
  return (
    <Accordion.Item value={`${method} ${path}`}>
      <Accordion.Control>
        <Group gap="sm" wrap="nowrap" align="baseline">
          <Badge variant="light" color={colors[method] ?? "gray"} radius="sm" miw={64}>{method}</Badge>
          <Box miw={0}>
            <Text className="mono" fw={600} style={{ overflowWrap: "anywhere" }}>{path}</Text>
            <Text size="sm" c="dimmed">{of.summary}</Text>
          </Box>
        </Group>
      </Accordion.Control>
      <Accordion.Panel>
        <Stack gap="sm">
          {parameters.map(({ in: where, name, required }) => (
            <Text key={name} size="sm">
              <span className="mono">{name}</span>
              <Text span c="dimmed">{` in the ${where}${required === true ? "" : ", optional"}`}</Text>
            </Text>
          ))}
          {request !== undefined && (
            <div>
              <Text size="sm" fw={600} mb={4}>Request body</Text>
              <CodeBlock label={`Request body of ${method} ${path}`} text={request} />
            </div>
          )}
          {Object.entries(of.responses).map(([status, response]) => {
            const schema = schemaText(response, schemas)
            return (
              <div key={status}>
                <Text size="sm" fw={600} mb={4}>
                  {status}
                  <Text span c="dimmed" fw={400}>{` ${response.description ?? ""}`}</Text>
                </Text>
                {schema !== undefined && Number(status) < 400 && (
                  <CodeBlock label={`Response ${status} of ${method} ${path}`} text={schema} />
                )}
              </div>
            )
          })}
        </Stack>
      </Accordion.Panel>
    </Accordion.Item>
  )
}

const Reference = () => (
  <Page
    title="Admin API"
    description="Everything in this console, for programs. Authenticate with the admin token as a bearer token."
    actions={<Anchor href={address} target="_blank" size="sm">openapi.json</Anchor>}
  >
    <Card title="Try it">
      <CodeBlock
        label="Example"
        text={`curl ${location.origin}/api/keys -H "Authorization: Bearer $CONSOLE_ADMIN_TOKEN"`}
      />
    </Card>
    <Loaded query={useDocument()}>
      {({ components, paths }) => (
        <Accordion variant="separated" multiple>
          {Object.entries(paths).flatMap(([path, methods]) =>
            Object.entries(methods).map(([method, endpoint]) => (
              <Operation
                key={`${method} ${path}`}
                path={path}
                method={method}
                of={endpoint}
                schemas={components.schemas}
              />
            ))
          )}
        </Accordion>
      )}
    </Loaded>
  </Page>
)

export default Reference
