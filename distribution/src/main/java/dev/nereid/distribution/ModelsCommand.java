package dev.nereid.distribution;

import dev.nereid.distribution.client.ClientOptions;
import dev.nereid.distribution.client.RequestErrors;
import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.client.ServerClient;
import dev.nereid.distribution.flags.ClientFlags;
import dev.nereid.distribution.flags.Flag;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.ExitStatus;
import dev.nereid.distribution.report.TextTable;
import io.vertx.core.json.DecodeException;
import io.vertx.core.json.JsonArray;
import io.vertx.core.json.JsonObject;

/** The command {@code nereid models}: lists the models of a running server. Confined to its thread. */
final class ModelsCommand implements Command {
    private final CommandContext context;
    private final ClientFlags client = ClientFlags.ofRead();
    private boolean json;

    ModelsCommand(CommandContext context) {
        this.context = context;
    }

    @Override
    public String name() {
        return "models";
    }

    @Override
    public String description() {
        return "Lists the models of a running server with their states.";
    }

    @Override
    public String synopsis() {
        return "nereid models [FLAG]...";
    }

    @Override
    public String exitCodes() {
        return Command.CLIENT_EXIT_CODES;
    }

    @Override
    public void declare(Flags flags) {
        flags.add(Flag.toggle("--json", "Prints the JSON of the server.", () -> json = true));
        client.declare(flags);
    }

    @Override
    public int run() throws RequestException, InterruptedException {
        ClientOptions options = client.options();
        try (ServerClient server = new ServerClient(options)) {
            String index = server.index();
            String table = table(index, options); // checks the form in any case
            context.console().out().print(json ? index + "\n" : table);
        }
        return ExitStatus.SUCCESS;
    }

    private static String table(String index, ClientOptions options) throws RequestException {
        TextTable table = new TextTable("MODEL", "VERSION", "STATE", "REASON");
        try {
            JsonArray models = new JsonArray(index);
            for (int i = 0; i < models.size(); i++) {
                JsonObject model = models.getJsonObject(i);
                table.add(
                        model.getString("name", "-"),
                        model.getString("version", "-"),
                        model.getString("state", "-"),
                        model.getString("reason", ""));
            }
        } catch (DecodeException | ClassCastException e) {
            throw RequestErrors.unexpected(options.url());
        }
        return table.toString();
    }
}
