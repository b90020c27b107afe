package dev.nereid.distribution;

import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.client.ServerClient;
import dev.nereid.distribution.flags.ClientFlags;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.flags.UsageException;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.ExitStatus;
import java.util.List;

/** A command that sends a request to a running server and prints the result. Confined to its thread. */
record ClientCommand(CommandContext context, CommandForm form, ClientFlags server, ClientAction action)
        implements Command {
    private static final String EXIT_CODES = "0 success; 1 no server, or the server refused; 2 wrong command line";

    /** Returns {@code nereid models}, {@code load}, {@code unload} and {@code config}. */
    static List<Command> all(CommandContext context) {
        return List.of(
                of(
                        context,
                        "models",
                        "[FLAG]...",
                        "Lists the models of a running server with their states.",
                        ClientFlags.ofRead(),
                        new ModelsAction()),
                of(
                        context,
                        "load",
                        "MODEL [FLAG]...",
                        "Loads a model of a running server, or loads it anew if it has changed.",
                        ClientFlags.ofChange(),
                        new ModelChange("loaded", new LoadAction())),
                of(
                        context,
                        "unload",
                        "MODEL [FLAG]...",
                        "Unloads a model of a running server, which completes the requests that the model has.",
                        ClientFlags.ofChange(),
                        new ModelChange("unloaded", new UnloadAction())),
                of(
                        context,
                        "config",
                        "MODEL [FLAG]...",
                        "Prints the completed configuration of a model of a running server, as JSON.",
                        ClientFlags.ofRead(),
                        new ConfigAction()));
    }

    private static Command of(
            CommandContext context,
            String name,
            String arguments,
            String description,
            ClientFlags server,
            ClientAction action) {
        return new ClientCommand(context, new CommandForm(name, arguments, description, EXIT_CODES), server, action);
    }

    @Override
    public void declare(Flags flags) {
        action.declare(flags);
        server.declare(flags);
    }

    @Override
    public int run() throws UsageException, RequestException, InterruptedException {
        try (ServerClient client = new ServerClient(server.options())) {
            context.console().out().print(action.run(client));
        } catch (RequestException e) {
            context.console().out().print(action.failure(e));
            throw e;
        }
        return ExitStatus.SUCCESS;
    }
}
