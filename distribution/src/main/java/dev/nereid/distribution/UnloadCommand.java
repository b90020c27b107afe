package dev.nereid.distribution;

import dev.nereid.distribution.client.ControlResult;
import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.client.ServerClient;
import dev.nereid.distribution.flags.ClientFlags;
import dev.nereid.distribution.flags.Flag;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.ExitStatus;

/** The command {@code nereid unload}: unloads a model of a running server. Confined to its thread. */
final class UnloadCommand implements Command {
    private final CommandContext context;
    private final ClientFlags client = ClientFlags.ofChange();
    private String model = "";
    private boolean json;
    private boolean dependents;

    UnloadCommand(CommandContext context) {
        this.context = context;
    }

    @Override
    public String name() {
        return "unload";
    }

    @Override
    public String description() {
        return "Unloads a model of a running server, which completes the requests that the model has.";
    }

    @Override
    public String synopsis() {
        return "nereid unload MODEL [FLAG]...";
    }

    @Override
    public String exitCodes() {
        return Command.CLIENT_EXIT_CODES;
    }

    @Override
    public void declare(Flags flags) {
        flags.operand("MODEL", value -> model = value);
        flags.add(
                Flag.toggle(
                        "--dependents", "Unloads the models too that only this one needs.", () -> dependents = true),
                Flag.toggle("--json", "Prints the result as JSON: model, ok and error.", () -> json = true));
        client.declare(flags);
    }

    @Override
    public int run() throws RequestException, InterruptedException {
        try (ServerClient server = new ServerClient(client.options())) {
            server.unload(model, dependents);
        } catch (RequestException e) {
            if (json) {
                context.console().out().print(ControlResult.failure(model, e));
            }
            throw e;
        }
        context.console().out().print(json ? ControlResult.success(model) : model + ": unloaded\n");
        return ExitStatus.SUCCESS;
    }
}
