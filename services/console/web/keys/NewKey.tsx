/** Creates a key and shows its secret once. */
import { Button, Group, Modal, Stack, Text } from "@mantine/core"
import { RocketIcon } from "@radix-ui/react-icons"
import { useState } from "react"
import { useLocation } from "wouter"
import { CodeBlock } from "../parts/Copy.tsx"
import { Secret } from "../parts/Secret.tsx"
import { usePlaygroundKey } from "../data/PlaygroundKey.tsx"
import { useCreateKey } from "../data/Queries.ts"
import { KeyForm } from "./KeyForm.tsx"

export const NewKey = ({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) => {
  const create = useCreateKey()
  const { setKey: hold } = usePlaygroundKey()
  const [, navigate] = useLocation()
  const [isCopied, setCopied] = useState(false)
  const made = create.data
  const close = () => {
    onClose()
    create.reset()
    setCopied(false)
  }
  return (
    <Modal
      opened={isOpen}
      onClose={close}
      title={made === undefined ? "Create an API key" : `Your new key: ${made.key.name}`}
      size="lg"
      // an accidental click or Escape must not lose the secret
      closeOnClickOutside={made === undefined}
      closeOnEscape={made === undefined || isCopied}
    >
      {made === undefined
        ? (
          <KeyForm
            submit="Create key"
            isBusy={create.isPending}
            onSubmit={(settings) => create.mutate(settings)}
            onCancel={close}
          />
        )
        : (
          <Stack gap="md">
            <Secret copy="Copy key" value={made.secret} onCopy={() => setCopied(true)}>
              Copy the key now and store it safely. Only its hash is stored, so the key cannot be shown again.
            </Secret>
            <Text size="sm" c="dimmed">The key is active. As an environment variable:</Text>
            <CodeBlock label="Environment variable" text={`export KEY=${made.secret}`} />
            <Group justify="space-between">
              <Button
                variant="light"
                leftSection={<RocketIcon />}
                onClick={() => {
                  hold(made.secret)
                  close()
                  navigate("/playground")
                }}
              >
                Try it in the playground
              </Button>
              <Button variant="default" onClick={close}>Done</Button>
            </Group>
          </Stack>
        )}
    </Modal>
  )
}
