/** Writes reports, and describes the machine for them. */
import { Console, DateTime, Effect, FileSystem, Path } from "effect"
import { availableParallelism, cpus } from "node:os"

export const machine = Effect.map(
  DateTime.now,
  (now) =>
    `${DateTime.formatIso(now).slice(0, 10)}, ${availableParallelism()} cores of ${
      cpus()[0]?.model.trim() ?? "an unknown processor"
    }, Node ${process.versions.node}`
)

/** The lines of a Markdown table. */
export const table = (heads: ReadonlyArray<string>, lines: ReadonlyArray<ReadonlyArray<string | number>>) => [
  `| ${heads.join(" | ")} |`,
  `|${heads.map(() => "---|").join("")}`,
  ...lines.map((cells) => `| ${cells.join(" | ")} |`)
]

/** Prints a report and writes it to the folder, with the files that belong to it, by their names. */
export const publish = Effect.fn("Results.publish")(function*(
  folder: string,
  name: string,
  text: string,
  beside: Readonly<Record<string, string>> = {}
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* Console.log(`\n${text}`)
  yield* fs.makeDirectory(folder, { recursive: true })
  for (const [file, content] of Object.entries({ ...beside, [name]: text })) {
    yield* fs.writeFileString(path.join(folder, file), content)
  }
})
