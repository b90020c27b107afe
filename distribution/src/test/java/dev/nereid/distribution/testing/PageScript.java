package dev.nereid.distribution.testing;

import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** Starts the commands of a page as one script, in a directory with its files and links to the checkout. */
public final class PageScript {
    private static final String WRITTEN_ADDRESS = "localhost:8000";

    private PageScript() {}

    /**
     * Starts the commands, which stop at the first failure. The last process in the background is ended with them.
     *
     * @param page the page
     * @param directory an empty directory
     * @param replaced texts of the commands with what takes their place, beside the address of the server
     */
    public static Process start(MarkdownPage page, Path directory, Map<String, String> replaced) throws IOException {
        for (String part : List.of("nereid", "distribution", "examples")) {
            Files.createSymbolicLink(directory.resolve(part), InstalledServer.CHECKOUT.resolve(part));
        }
        page.saveFiles(directory);
        int port = freePort();
        String commands = String.join("", page.commands()).replace(WRITTEN_ADDRESS, "localhost:" + port);
        for (Map.Entry<String, String> text : replaced.entrySet()) {
            commands = commands.replace(text.getKey(), text.getValue());
        }
        ProcessBuilder shell = new ProcessBuilder(
                        "/bin/sh", "-c", "trap 'kill $! 2>/dev/null || true' EXIT\nset -e\n" + commands)
                .directory(directory.toFile())
                .redirectErrorStream(true);
        shell.environment()
                .putAll(Map.of(
                        "NEREID_HTTP_PORT",
                        String.valueOf(port),
                        "NEREID_URL",
                        "http://localhost:" + port,
                        "NEREID_GRPC_PORT",
                        "0",
                        "NEREID_METRICS_PORT",
                        "0",
                        "PATH",
                        Path.of(System.getProperty("java.home"), "bin") + ":" + System.getenv("PATH")));
        return shell.start();
    }

    /** Returns a port that is free now. */
    public static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }
}
