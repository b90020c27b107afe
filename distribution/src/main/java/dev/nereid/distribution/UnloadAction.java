package dev.nereid.distribution;

import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.client.ServerClient;
import dev.nereid.distribution.flags.ClientFlags;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.process.CommandContext;

/** Unloads a model of a running server. Confined to the thread of its command. */
final class UnloadAction implements ClientAction {
    private final ModelChange change = new ModelChange("unloaded");
    private boolean dependents;

    static Command command(CommandContext context) {
        return new ClientCommand(
                context,
                "unload",
                "MODEL [FLAG]...",
                "Unloads a model of a running server, which completes the requests that the model has.",
                ClientFlags.ofChange(),
                new UnloadAction());
    }

    @Override
    public void declare(Flags flags) {
        change.declareModel(flags);
        flags.toggle("--dependents", () -> dependents = true).help("Unloads the models too that only this one needs.");
        change.declareFormat(flags);
    }

    @Override
    public String run(ServerClient server) throws RequestException, InterruptedException {
        server.unload(change.model(), dependents);
        return change.success();
    }

    @Override
    public String failure(RequestException error) {
        return change.failure(error);
    }
}
