/** Playground: a form for every operation, the answer as it arrives, and the matching curl command. */
import { Alert, Box, Button, Group, Select, Stack, Tabs, Text } from "@mantine/core"
import { PaperPlaneIcon, RocketIcon, StopIcon } from "@radix-ui/react-icons"
import { useEffect, useRef, useState } from "react"
import { messageOf } from "../data/Client.ts"
import { milliseconds } from "../data/Format.ts"
import { CodeBlock } from "../parts/Copy.tsx"
import { Empty } from "../parts/Feedback.tsx"
import { Page } from "../parts/Page.tsx"
import { type Answer, emptyAnswer } from "../playground/Answer.ts"
import { Form } from "../playground/Form.tsx"
import { KeyInput } from "../playground/KeyInput.tsx"
import { operations, type Value, type Values } from "../playground/Operations.ts"
import { Result } from "../playground/Result.tsx"
import { curlOf, type Request, RequestRejected, send } from "../playground/Send.ts"
import { usePlaygroundKey } from "../data/PlaygroundKey.tsx"
import { queries, useCatalogue } from "../data/Queries.ts"

interface Run {
  readonly state: "idle" | "running" | "done" | "stopped" | "failed"
  readonly answer: Answer
  readonly error: unknown
  /** Milliseconds from the click to the first and to the last part of the answer. */
  readonly firstMs: number | undefined
  readonly wholeMs: number | undefined
}

const idle: Run = { state: "idle", answer: emptyAnswer, error: undefined, firstMs: undefined, wholeMs: undefined }

/** Runs one request at a time. Leaving the page aborts it. */
const useRun = () => {
  const [run, setRun] = useState(idle)
  const controller = useRef<AbortController>(undefined)
  const stop = () => controller.current?.abort()
  useEffect(() => () => controller.current?.abort(), [])
  const start = async (request: Request) => {
    stop()
    const own = controller.current = new AbortController()
    const began = performance.now()
    let last: Run = { ...idle, state: "running" }
    const tell = (next: Partial<Run>) => {
      last = { ...last, ...next }
      if (controller.current === own) setRun(last)
    }
    tell({})
    try {
      for await (const answer of send(request, own.signal)) {
        tell({ answer, firstMs: last.firstMs ?? performance.now() - began })
      }
      tell({ state: "done", wholeMs: performance.now() - began })
    } catch (error) {
      const wholeMs = performance.now() - began
      tell(own.signal.aborted ? { state: "stopped", wholeMs } : { state: "failed", error })
    }
    void queries.invalidateQueries({ queryKey: ["requests"] })
  }
  const reset = () => {
    stop()
    controller.current = undefined
    setRun(idle)
  }
  return { run, start, stop, reset }
}

const Failed = ({ error }: { readonly error: unknown }) => (
  <Alert
    color="red"
    role="alert"
    title={error instanceof RequestRejected ? `The gateway rejected the request: ${error.status}` : "Failed"}
  >
    {messageOf(error)}
    {error instanceof RequestRejected && error.code !== null
      ? <Text size="xs" c="dimmed" className="mono" mt={4}>{error.code}</Text>
      : null}
  </Alert>
)

const Output = ({ curl, run }: { readonly run: Run; readonly curl: string }) => {
  const { answer, error, firstMs, state, wholeMs } = run
  return (
    <Box className="card" component="section" aria-label="Answer">
      <Tabs defaultValue="answer">
        <Tabs.List px="sm" pt={4}>
          <Tabs.Tab value="answer">Answer</Tabs.Tab>
          <Tabs.Tab value="json">JSON</Tabs.Tab>
          <Tabs.Tab value="curl">curl</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="answer" p="md" aria-busy={state === "running"}>
          {state !== "idle" ? <Result of={answer} /> : (
            <Empty icon={RocketIcon} title="No request sent yet">
              The answer appears here as it arrives. The curl tab has the same request for your terminal.
            </Empty>
          )}
          {state === "failed" && <Failed error={error} />}
          {state === "running" && answer === emptyAnswer && (
            <Text c="dimmed" role="status">Waiting for the answer…</Text>
          )}
          {wholeMs !== undefined && (
            <Text size="xs" c="dimmed" mt="md" className="numeric" role="status">
              {state === "stopped" ? "Stopped after " : "Answered in "}
              {milliseconds(wholeMs)}
              {firstMs === undefined ? "" : `, first part after ${milliseconds(firstMs)}`}
            </Text>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="json" p="md">
          <CodeBlock label="The answer as JSON" text={answer.raw === "" ? "No answer yet" : answer.raw} />
        </Tabs.Panel>
        <Tabs.Panel value="curl" p="md">
          <CodeBlock label="The request for a terminal" text={curl} />
        </Tabs.Panel>
      </Tabs>
    </Box>
  )
}

const Playground = ({ gatewayUrl }: { readonly gatewayUrl: string }) => {
  const [name, setName] = useState(operations[0]?.name)
  const [chosen, choose] = useState<string | null>(null)
  const [entered, enter] = useState<Readonly<Record<string, Values>>>({})
  const { key } = usePlaygroundKey()
  const { reset, run, start, stop } = useRun()
  const catalogue = useCatalogue()

  const operation = operations.find((operation) => operation.name === name)
  if (operation === undefined) return null
  const { fields, title, workloads } = operation
  const offered = (catalogue.data?.models ?? []).filter(({ workload }) => workloads.includes(workload))
  const models = offered.map(({ name }) => name)
  const model = chosen !== null && models.includes(chosen)
    ? chosen
    : models.find((name) => name.startsWith("local-")) ?? models[0] ?? ""
  const initial = Object.fromEntries(fields.map((field) => [field.name, field.initial]))
  const values: Values = { ...initial, ...entered[operation.name] }
  const request: Request = {
    operation,
    path: operation.path(model, values),
    body: operation.body(model, values),
    key
  }
  const isRunning = run.state === "running"
  const change = (field: string, value: Value) =>
    enter({ ...entered, [operation.name]: { ...entered[operation.name], [field]: value } })
  return (
    <Page
      title="Playground"
      description="Try every operation of the gateway, with requests exactly as a client sends them."
    >
      <div className="playground">
        <Box className="card" p="md">
          <form
            aria-label={title}
            onSubmit={(event) => {
              event.preventDefault()
              void start(request)
            }}
          >
            <Stack gap="md">
              <Group grow align="flex-start" preventGrowOverflow={false} wrap="wrap">
                <Select
                  label="Operation"
                  allowDeselect={false}
                  searchable
                  value={operation.name}
                  onChange={(next) => {
                    if (next === null) return
                    reset()
                    setName(next)
                  }}
                  data={operations.map(({ name, title }) => ({ value: name, label: title }))}
                />
                <Select
                  label="Model"
                  allowDeselect={false}
                  value={model === "" ? null : model}
                  onChange={choose}
                  data={models}
                  nothingFoundMessage="The catalogue has no model for this operation"
                />
              </Group>
              <KeyInput />
              <Form fields={fields} values={values} onChange={change} />
              <Group justify="flex-end">
                {isRunning && <Button variant="default" leftSection={<StopIcon />} onClick={stop}>Stop</Button>}
                <Button
                  type="submit"
                  leftSection={<PaperPlaneIcon />}
                  disabled={key === "" || model === ""}
                  loading={isRunning}
                >
                  Send
                </Button>
              </Group>
            </Stack>
          </form>
        </Box>
        <Output run={run} curl={curlOf(request, gatewayUrl)} />
      </div>
    </Page>
  )
}

export default Playground
