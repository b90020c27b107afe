package dev.nereid.distribution;

import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.client.ServerClient;
import dev.nereid.distribution.flags.ClientFlags;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.flags.UsageException;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.ExitStatus;

/**
 * A command that sends a request to a running server and prints the result. Confined to its thread.
 *
 * @param arguments the arguments in the synopsis, as in {@code MODEL [FLAG]...}
 * @param server the flags of the server and the timeout
 */
record ClientCommand(
        CommandContext context,
        String name,
        String arguments,
        String description,
        ClientFlags server,
        ClientAction action)
        implements Command {
    @Override
    public String synopsis() {
        return "nereid " + name + " " + arguments;
    }

    @Override
    public String exitCodes() {
        return "0 success; 1 no server, or the server refused; 2 wrong command line";
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
