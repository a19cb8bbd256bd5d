/** The API key that the playground sends: pasted, or made for the day. */
import { Anchor, Group, PasswordInput, Text } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { DateTime } from "effect"
import { usePlaygroundKey } from "../data/PlaygroundKey.tsx"
import { useCreateKey } from "../data/Queries.ts"

export const KeyInput = () => {
  const { hold, key } = usePlaygroundKey()
  const create = useCreateKey()
  const make = () =>
    create.mutate({
      name: "playground",
      expiresAt: DateTime.add(DateTime.nowUnsafe(), { days: 1 }),
      disabled: false,
      allowedModels: ["*"],
      requestsPerMinute: null,
      tokensPerMinute: null,
      concurrentRequests: null,
      priorityClass: "interactive",
      weight: 1,
      monthlyBudgetUsd: null
    }, {
      onSuccess: ({ secret }) => {
        hold(secret)
        notifications.show({ color: "teal", message: "A key named playground is made. It expires in a day." })
      }
    })
  return (
    <div>
      <PasswordInput
        label="API key"
        placeholder="sk-gw-…"
        autoComplete="off"
        value={key}
        onChange={({ currentTarget }) => hold(currentTarget.value.trim())}
      />
      <Group gap={6} mt={4}>
        <Text size="xs" c="dimmed">Kept in this page's memory only.</Text>
        {key === "" ?
          (
            <Anchor component="button" type="button" size="xs" disabled={create.isPending} onClick={make}>
              Make one for a day
            </Anchor>
          ) :
          null}
      </Group>
    </div>
  )
}
