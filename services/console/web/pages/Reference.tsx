/** The admin API for programs: what the console itself is built on, from its OpenAPI document. */
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
  tags: Schema.optionalKey(Schema.Array(Schema.String)),
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

/** References are followed, a few steps deep. */
const resolved = (schema: unknown, { components }: Document, depth = 0): unknown => {
  if (typeof schema !== "object" || schema === null) return schema
  if (Array.isArray(schema)) return schema.map((item) => resolved(item, { components, paths: {} }, depth))
  if ("$ref" in schema && typeof schema.$ref === "string") {
    const name = schema.$ref.split("/").at(-1) ?? ""
    return depth > 4 ? name : resolved(components.schemas[name], { components, paths: {} }, depth + 1)
  }
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, resolved(value, { components, paths: {} }, depth)])
  )
}

const schemaOf = ({ content }: typeof Body.Type, document: Document): string | undefined => {
  const [type, body] = Object.entries(content ?? {})[0] ?? []
  if (type === undefined || body === undefined) return undefined
  return type.includes("json") ? JSON.stringify(resolved(body.schema, document), null, 2) : type
}

const Operation = ({ document, method, of, path }: {
  readonly path: string
  readonly method: string
  readonly of: typeof Endpoint.Type
  readonly document: Document
}) => {
  const request = of.requestBody === undefined ? undefined : schemaOf(of.requestBody, document)
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
          {(of.parameters ?? []).filter((parameter) => parameter.in !== "cookie").map((
            { in: where, name, required }
          ) => (
            <Text key={name} size="sm">
              <span className="mono">{name}</span>
              <Text span c="dimmed">{` in the ${where}${required === true ? "" : ", may be left out"}`}</Text>
            </Text>
          ))}
          {request === undefined ? null : (
            <div>
              <Text size="sm" fw={600} mb={4}>Request body</Text>
              <CodeBlock label={`Request body of ${method} ${path}`} text={request} />
            </div>
          )}
          {Object.entries(of.responses).map(([status, response]) => {
            const schema = schemaOf(response, document)
            return (
              <div key={status}>
                <Text size="sm" fw={600} mb={4}>
                  {status}
                  <Text span c="dimmed" fw={400}>{` ${response.description ?? ""}`}</Text>
                </Text>
                {schema === undefined || Number(status) >= 400
                  ? null
                  : <CodeBlock label={`Answer ${status} of ${method} ${path}`} text={schema} />}
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
    description="Everything that these pages show and do, for programs: with the admin token as a bearer."
    actions={<Anchor href={address} target="_blank" size="sm">openapi.json</Anchor>}
  >
    <Card title="Try it">
      <CodeBlock
        label="Example"
        text={`curl ${location.origin}/api/keys -H "Authorization: Bearer $CONSOLE_ADMIN_TOKEN"`}
      />
    </Card>
    <Loaded query={useDocument()}>
      {(document) => (
        <Accordion variant="separated" multiple>
          {Object.entries(document.paths).flatMap(([path, methods]) =>
            Object.entries(methods).map(([method, endpoint]) => (
              <Operation key={`${method} ${path}`} path={path} method={method} of={endpoint} document={document} />
            ))
          )}
        </Accordion>
      )}
    </Loaded>
  </Page>
)

export default Reference
