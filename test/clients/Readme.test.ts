/**
 * The README's examples work: its programs run, and the requests in its table of operations succeed. The gallery's own README
 * lists all its files.
 */
import { otherWorkloads } from "../fixture/gateway/Gateway.ts"
import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { operations } from "../../shared/contract/operations/operations.ts"
import { sharedGateway } from "../fixture/gateway/SharedGateway.ts"
import { hungAfterMs } from "../fixture/general/Eventually.ts"

const repository = join(import.meta.dirname, "../..")
const readme = readFileSync(join(repository, "README.md"), "utf8")

/** The gateway's address in the README. */
const there = "http://127.0.0.1:8080"

const programs = [...readme.matchAll(/<code>([^<]+)<\/code><\/summary>\n\n```ts\n([\s\S]*?)```/g)].map(
  ([, client = "", program = ""]) => ({ client, program })
)

const rows = [...readme.matchAll(/^\| ([^|]+) \| `POST \$BASE([^`]+)`[^|]*\| `(\{.*\})` \|$/gm)].map(
  ([, operation = "", path = "", body = ""]) => ({ operation, path, body })
)

describe("the README", () => {
  const gateway = sharedGateway({ services: otherWorkloads })

  it("has programs and requests", () => {
    assert.sameMembers(programs.map(({ client }) => client), ["openai", "@anthropic-ai/sdk", "@google/genai"])
    const ends = operations.map(({ paths: [path = ""] }) => path.split("{model}").at(-1) ?? path)
    const missing = ends.filter((end) => !readme.includes(`${end}\``))
    assert.deepStrictEqual(missing, [], "paths to add to the table of operations in README.md")
  })

  it.for(programs)("has a program for $client that prints an answer", async ({ program }) => {
    const words = ["--input-type=module-typescript", "--eval", program.replaceAll(there, gateway().url)]
    // so that it finds its packages
    const options = { cwd: repository, env: { ...process.env, KEY: gateway().key }, timeout: hungAfterMs }
    const { stdout } = await promisify(execFile)(process.execPath, words, options)
    assert.include(stdout, "built-in echo")
  })

  it.for(rows)("has a request of $operation that succeeds", async ({ body, operation, path }) => {
    const [, name, value] = /-H "([^:]+): ([^"]+)"/.exec(operation) ?? []
    const answer = await fetch(`${gateway().url}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${gateway().key}`,
        "content-type": "application/json",
        ...(name === undefined || value === undefined ? {} : { [name]: value })
      },
      body
    })
    const text = await answer.text()
    assert.strictEqual(answer.status, 200, text.slice(0, 500))
    assert.isNotEmpty(text)
  })
})

describe("the gallery", () => {
  it("lists each of its files in its README", () => {
    const gallery = readFileSync(join(import.meta.dirname, "README.md"), "utf8")
    const listed = [...gallery.matchAll(/\]\(((?:[\w.]+\/)*\w+\.test\.ts)\)/g)].map(([, file = ""]) => file)
    const files = ["", "../long/clients/"].flatMap((folder) =>
      readdirSync(join(import.meta.dirname, folder), { encoding: "utf8", recursive: true })
        .filter((file) => file.endsWith(".test.ts"))
        .map((file) => `${folder}${file}`)
    )
    assert.sameMembers(listed, files)
  })
})
