/** The operations and their tasks in the reference. */
import { Schema } from "effect"
import type { Example, Operation, Workload } from "../../../shared/contract/Operation.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { videoTypes } from "../../../shared/contract/operations/VideoGenerations.ts"
import * as Errors from "./Errors.ts"
import * as Headers from "./Headers.ts"
import { type Parameter, parameter, type Response, type Route } from "./Route.ts"
import { binary, events, eventStream, json, ref } from "./Schemas.ts"
import { taskExample } from "./TaskRoutes.ts"

const tagOf: Readonly<Record<Workload, Route["tag"]>> = {
  chat: "Chat",
  images: "Images",
  video: "Video",
  speech: "Speech",
  embeddings: "Search",
  rerank: "Search"
}

const form = "multipart/form-data"

/** `chat.completions` → `ChatCompletions`. */
const pascalCase = (name: string): string =>
  name.split(".").map((word) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`).join("")

/** Whether any answer is JSON or events. */
const hasAnswer = (examples: Operation["examples"]): boolean =>
  Object.values(examples).some(({ answer }) => answer !== undefined)

/** One name for every schema, from the first operation that uses it. */
const names = new Map<Schema.Top, string>()
for (const { examples, form, name, request, response, task } of operations) {
  const own = pascalCase(name)
  const entries = [
    [request, `${own}Request`],
    [form?.to, `${own}Form`],
    [hasAnswer(examples) ? response : undefined, `${own}Answer`],
    [task, `${own}Task`]
  ] as const
  for (const [schema, name] of entries) if (schema !== undefined && !names.has(schema)) names.set(schema, name)
}

/** Schemas of forms. They are described by their decoded types: forms send every field except files as text. */
const formFields = new Set(operations.flatMap(({ form }) => form?.to ?? []))

export const schemas = Object.fromEntries(
  [...names].map(([schema, name]) => [name, formFields.has(schema) ? Schema.toType(schema) : schema])
)

const refTo = (schema: Schema.Top) => ref(names.get(schema) ?? "")

const hasModelInPath = (path: string): boolean => path.includes("{model}")

/** The body of an example as sent to a path. */
const bodyOf = (path: string, { body, model }: Example) => hasModelInPath(path) ? body : { model, ...body }

type Named = readonly [name: string, value: unknown]

const examplesOf = (examples: ReadonlyArray<Named>) =>
  examples.length === 0 ? {} : { examples: Object.fromEntries(examples) }

const requestBody = (operation: Operation, path: string) => {
  const of = (isForm: boolean) =>
    examplesOf(
      Object.entries(operation.examples)
        .filter(([, example]) => (example.isForm ?? false) === isForm)
        .map(([name, example]) => [name, { summary: example.summary, value: bodyOf(path, example) }])
    )
  return {
    required: true,
    content: {
      ...json(refTo(operation.request), of(false)),
      ...(operation.form === undefined ? {} : { [form]: { schema: refTo(operation.form.to), ...of(true) } })
    }
  }
}

/** The example answers by media type: events or JSON. Answers of other types have no example. */
const contentOf = (
  { examples, response, responseTypes = [], streams }: Operation
): Readonly<Record<string, object>> => {
  const byType = Map.groupBy(
    Object.entries(examples).filter(([, { answer }]) => answer !== undefined),
    ([, { body }]) => streams(body) ? eventStream : "application/json"
  )
  return {
    ...Object.fromEntries([...byType].map(([type, examples]) => {
      const answers = examples.map(([name, { answer, summary }]): Named => [name, { summary, value: answer }])
      return [type, { ...(type === eventStream ? events[type] : { schema: refTo(response) }), ...examplesOf(answers) }]
    })),
    ...binary(responseTypes)
  }
}

const success = (operation: Operation): Response => ({
  description: operation.kind === "task" ? "The new task" : "The answer",
  headers: operation.kind === "task" ? Headers.of.task : Headers.of.answered,
  content: contentOf(operation)
})

/** Whether clients may ask for an answer later by a header; see `Operations.ts`. */
const mayOutlive = ({ kind }: Operation): boolean => kind !== "task"

const accepted: Response = {
  description: "With `Prefer: respond-async`: the task that makes the answer",
  headers: Headers.of.accepted,
  content: json(ref("Task"), { example: { ...taskExample, status: "queued", completed_at: null, url: null } })
}

const modelParameter = ({ examples }: Operation): Parameter => ({
  ...parameter("path", "model", "The name of a model of the gateway. It may contain slashes."),
  examples: Object.fromEntries(Object.entries(examples).map(([name, { model }]) => [name, { value: model }]))
})

const parametersOf = (operation: Operation, path: string): ReadonlyArray<Parameter> => {
  const { headers = [], kind, versionHeaders = [] } = operation
  return [
    ...(hasModelInPath(path) ? [modelParameter(operation)] : []),
    ...versionHeaders.map(Headers.versionOf),
    ...headers.map(Headers.request),
    Headers.request("idempotency-key"),
    ...(kind === "task" ? [] : [Headers.request("x-stainless-timeout")]),
    ...(mayOutlive(operation) ? [Headers.request("prefer")] : [])
  ]
}

const errorsOf = ({ form, kind, versionHeaders, workloads }: Operation) => [
  ...Errors.of.requests,
  ...(versionHeaders === undefined ? [] : Errors.of.versions),
  ...(form === undefined ? [] : Errors.of.forms),
  ...Errors.of.keys,
  ...Errors.of.idempotencyKeys,
  ...(kind === "task"
    ? Errors.of.newTasks
    : [
      ...Errors.of.keptAnswers,
      ...workloads.flatMap((workload) => Errors.ofWorkloads[workload] ?? []),
      ...Errors.of.jobs
    ]),
  ...Errors.of.all
]

/** One route for each path of the operation. */
const routesOf = (operation: Operation): ReadonlyArray<Route> =>
  operation.paths.map((path, index) => ({
    method: "post",
    path,
    operationId: index === 0 ? operation.name : `${operation.name}.${index + 1}`,
    summary: index === 0 ? operation.summary : `${operation.summary}, at ${path}`,
    description: index === 0
      ? operation.description
      : `The same as \`${operation.paths[0]}\`. ${operation.description}`,
    tag: tagOf[operation.workloads[0]],
    key: operation.dialect,
    dialect: operation.dialect,
    parameters: parametersOf(operation, path),
    body: requestBody(operation, path),
    headers: { ...Headers.of.limits, ...(operation.dialect === "anthropic" ? Headers.of.anthropicLimits : {}) },
    responses: { 200: success(operation), ...(mayOutlive(operation) ? { 202: accepted } : {}) },
    errors: errorsOf(operation)
  }))

const taskParameter = parameter("path", "task_id", "The id from the response that created the task.")

const signature = ["expires", "signature"].map((name): Parameter => ({
  ...parameter(
    "query",
    name,
    "From the signed `url` of a completed task. With `expires` and `signature`, no API key is needed."
  ),
  required: false
}))

const whichVideo: Parameter = {
  ...parameter("query", "video", "Which of the task's videos, from 0 to `n` - 1. Default 0."),
  required: false
}

const video = { headers: Headers.of.file, content: binary(Object.values(videoTypes)) }

/** The routes of the tasks that an operation creates. */
const taskRoutesOf = (operation: Operation): ReadonlyArray<Route> => {
  const { dialect, name, paths: [path], task, workloads: [workload] } = operation
  if (task === undefined) return []
  const common = { tag: tagOf[workload], key: dialect, dialect }
  const shown = {
    ...common,
    path: `${path}/{task_id}`,
    parameters: [taskParameter],
    responses: {
      200: { description: "The current state of the task", headers: Headers.of.waiting, content: json(refTo(task)) }
    },
    errors: [...Errors.of.keys, ...Errors.of.tasks, ...Errors.of.all]
  }
  return [
    {
      ...shown,
      method: "get",
      operationId: `${name}.get`,
      summary: "Get a task's status",
      description: "`retry-after` gives the time to wait before the next poll."
    },
    {
      ...shown,
      method: "delete",
      operationId: `${name}.cancel`,
      summary: "Cancel a task",
      description: "Has no effect on a task that has ended. The provider may bill what it has already done."
    },
    {
      ...common,
      method: "get",
      path: `${path}/{task_id}/content`,
      operationId: `${name}.content`,
      summary: "Download a task's result",
      description: "Needs the API key that created the task, or the signed URL in the task's `url`.",
      isKeyOptional: true,
      parameters: [taskParameter, whichVideo, ...signature, Headers.request("range"), Headers.request("if-range")],
      responses: {
        200: { description: "The whole file", ...video },
        206: { description: "The part requested by the `range` header", ...video }
      },
      errors: [...Errors.of.keys, ...Errors.of.tasks, ...Errors.of.contents, ...Errors.of.all]
    }
  ]
}

export const routes = operations.flatMap((operation) => [...routesOf(operation), ...taskRoutesOf(operation)])
