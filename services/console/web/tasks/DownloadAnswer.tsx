/** Downloads the answer of a task, or a file of a batch, from the gateway, with a key of its owner: the console itself cannot read it. */
import { Button, Group, Stack, Text } from "@mantine/core"
import { useMutation } from "@tanstack/react-query"
import { usePlaygroundKey } from "../data/PlaygroundKey.tsx"
import { keptHere, KeyField } from "../playground/KeyInput.tsx"
import { ask } from "../playground/Send.ts"
import type { Content } from "./TaskFacts.tsx"

const extensionOf = (type: string): string =>
  type.startsWith("text/") ? "txt" : /^\w+\/([a-z0-9]+)/.exec(type)?.[1] ?? "bin"

const save = (name: string, content: Blob): void => {
  const link = document.createElement("a")
  link.href = URL.createObjectURL(content)
  link.download = `${name}.${extensionOf(content.type)}`
  link.click()
  URL.revokeObjectURL(link.href)
}

export const DownloadAnswer = ({ close, of: { name, path } }: { readonly of: Content; readonly close: () => void }) => {
  const { key } = usePlaygroundKey()
  const download = useMutation({
    mutationFn: async () => save(name, await (await ask(path, key)).blob()),
    onSuccess: close
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        download.mutate()
      }}
    >
      <Stack>
        <Text size="sm">
          Answers are encrypted for their owners. Use the key that created the task, or one that replaces it.
        </Text>
        <div>
          <KeyField />
          {keptHere}
        </div>
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>Close</Button>
          <Button type="submit" disabled={key === ""} loading={download.isPending}>Download</Button>
        </Group>
      </Stack>
    </form>
  )
}
