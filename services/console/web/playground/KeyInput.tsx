/** Inputs for the API key of requests to the gateway; in the playground with a button that creates a one-day key. */
import { Anchor, Group, PasswordInput, Text } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { DateTime } from "effect"
import { defaults } from "../../../../shared/keys/KeySettings.ts"
import { usePlaygroundKey } from "../data/PlaygroundKey.tsx"
import { useCreateKey } from "../data/Queries.ts"

export const KeyField = () => {
  const { key, setKey } = usePlaygroundKey()
  return (
    <PasswordInput
      label="API key"
      autoComplete="off"
      value={key}
      onChange={({ currentTarget }) => setKey(currentTarget.value.trim())}
    />
  )
}

export const keptHere = <Text size="xs" c="dimmed">Kept only in this page's memory.</Text>

export const KeyInput = () => {
  const { setKey: hold, key } = usePlaygroundKey()
  const create = useCreateKey()
  const make = () =>
    create.mutate({
      ...defaults,
      name: "playground",
      expiresAt: DateTime.add(DateTime.nowUnsafe(), { days: 1 }),
      priorityClass: "interactive"
    }, {
      onSuccess: ({ secret }) => {
        hold(secret)
        notifications.show({ color: "teal", message: "Created the key playground. It expires in one day." })
      }
    })
  return (
    <div>
      <KeyField />
      <Group gap={6} mt={4}>
        {keptHere}
        {key === "" && (
          <Anchor component="button" type="button" size="xs" disabled={create.isPending} onClick={make}>
            Create a one-day key
          </Anchor>
        )}
      </Group>
    </div>
  )
}
