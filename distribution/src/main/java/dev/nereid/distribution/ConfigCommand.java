package dev.nereid.distribution;

import dev.nereid.distribution.client.ClientOptions;
import dev.nereid.distribution.client.RequestErrors;
import dev.nereid.distribution.client.RequestException;
import dev.nereid.distribution.client.ServerClient;
import dev.nereid.distribution.flags.ClientFlags;
import dev.nereid.distribution.flags.Flag;
import dev.nereid.distribution.flags.FlagValue;
import dev.nereid.distribution.flags.Flags;
import dev.nereid.distribution.process.CommandContext;
import dev.nereid.distribution.process.ExitStatus;
import dev.nereid.distribution.report.ConfigText;
import java.util.OptionalLong;

/** The command {@code nereid config}: prints the configuration of a model of a running server. Confined to its thread. */
final class ConfigCommand implements Command {
    private final CommandContext context;
    private final ClientFlags client = ClientFlags.ofRead();
    private String model = "";
    private OptionalLong version = OptionalLong.empty();
    private boolean pbtxt;

    ConfigCommand(CommandContext context) {
        this.context = context;
    }

    @Override
    public String name() {
        return "config";
    }

    @Override
    public String description() {
        return "Prints the completed configuration of a model of a running server, as JSON.";
    }

    @Override
    public String synopsis() {
        return "nereid config MODEL [FLAG]...";
    }

    @Override
    public String exitCodes() {
        return Command.CLIENT_EXIT_CODES;
    }

    @Override
    public void declare(Flags flags) {
        flags.operand("MODEL", value -> model = value);
        flags.add(
                Flag.of(
                                "--version",
                                FlagValue.AMOUNT,
                                "The version. Default: the highest one that is ready.",
                                value -> version = OptionalLong.of(value))
                        .withoutVariable(),
                Flag.toggle("--pbtxt", "Prints protobuf's text format, as in config.pbtxt.", () -> pbtxt = true),
                Flag.toggle(
                        "--json",
                        "Prints JSON, as without this flag. Overrides --pbtxt before it.",
                        () -> pbtxt = false));
        client.declare(flags);
    }

    @Override
    public int run() throws RequestException, InterruptedException {
        ClientOptions options = client.options();
        try (ServerClient server = new ServerClient(options)) {
            String config = server.config(model, version);
            String printed = (pbtxt ? ConfigText.textFormat(config) : ConfigText.pretty(config))
                    .orElseThrow(() -> RequestErrors.unexpected(options.url()));
            context.console().out().print(printed);
        }
        return ExitStatus.SUCCESS;
    }
}
