package dev.nereid.distribution;

import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.client.ServerClient;
import dev.nereid.distribution.flags.Flags;

/** Unloads a model of a running server. Confined to the thread of its command. */
final class UnloadAction implements ModelChange.Action {
    private boolean dependents;

    @Override
    public void declare(Flags flags) {
        flags.toggle("--dependents", () -> dependents = true).help("Unloads the models too that only this one needs.");
    }

    @Override
    public void run(ServerClient server, String model) throws RequestException, InterruptedException {
        server.unload(model, dependents);
    }
}
