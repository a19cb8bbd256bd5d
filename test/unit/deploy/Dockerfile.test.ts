/** The Dockerfile passes its linter, and copies nothing that `.dockerignore` excludes. */
import { assert, describe, it } from "@effect/vitest"
import { Copy, DockerfileParser } from "dockerfile-ast"
import { validate } from "dockerfile-utils"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { nodeFlags } from "../../../shared/process/NodeFlags.ts"

const project = join(import.meta.dirname, "../../..")
const text = readFileSync(join(project, "deploy/Dockerfile"), "utf8")
const instructions = DockerfileParser.parse(text).getInstructions()

describe("the Dockerfile", () => {
  it("passes the linter", () => {
    assert.deepStrictEqual(validate(text), [])
  })

  it("pins each base image by version and digest", () => {
    const image = instructions.find((one) => one.getInstruction() === "ARG")?.getArgumentsContent()
    assert.match(image ?? "", /^NODE_IMAGE=docker\.io\/library\/node:\d+\.\d+\.\d+-[\w-]+@sha256:[0-9a-f]{64}$/)
    const bases = instructions.filter((one) => one.getInstruction() === "FROM").map((one) =>
      one.getArgumentsContent() ?? ""
    )
    const stages = bases.flatMap((base) => / AS (\S+)$/.exec(base)?.[1] ?? [])
    for (const base of bases) assert.include(["${NODE_IMAGE}", ...stages], base.replace(/ AS .*$/, ""))
  })

  it("starts services with the required Node options", () => {
    const entryPoint = instructions.find((one) => one.getInstruction() === "ENTRYPOINT")?.getArgumentsContent()
    assert.include(entryPoint, `exec node ${nodeFlags.join(" ")} $NODE_FLAGS `)
  })

  it("copies only project files that .dockerignore includes", () => {
    const allowed = readFileSync(join(project, ".dockerignore"), "utf8").match(/^!.+$/gm)?.map((line) => line.slice(1))
    const copied = instructions
      .filter((one) => one instanceof Copy && one.getFromFlag() === null)
      .flatMap((one) => one.getArguments().slice(0, -1).map((argument) => argument.getValue()))
    const allowing = copied.map((path) => allowed?.find((one) => path === one || path.startsWith(`${one}/`)) ?? path)
    assert.deepStrictEqual([...new Set(allowing)].toSorted(), allowed?.toSorted())
  })
})
