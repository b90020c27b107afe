package dev.nereid.compatibility;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A user with an empty home: no settings of Maven, and an empty local repository. Immutable.
 *
 * <p>What others publish comes from the local repository of this build, and from Maven Central what that lacks; nothing
 * of Nereid does, since only versions that are no snapshots are taken from there.
 *
 * @param home the home
 */
record NewUser(Path home) {
    private static final Path MAVEN = Path.of(System.getProperty("nereid.maven.home"));
    private static final Path MACHINE = Path.of(System.getProperty("nereid.maven.repository"));

    /** Creates the home. */
    static NewUser in(Path home) throws IOException {
        Path settings = Files.createDirectories(home.resolve(".m2")).resolve("settings.xml");
        String repository = "<id>machine</id><url>" + MACHINE.toUri() + "</url>"
                + "<releases><checksumPolicy>ignore</checksumPolicy></releases>"
                + "<snapshots><enabled>false</enabled></snapshots>";
        Files.writeString(settings, """
                <settings>
                  <profiles>
                    <profile>
                      <id>machine</id>
                      <repositories><repository>%1$s</repository></repositories>
                      <pluginRepositories><pluginRepository>%1$s</pluginRepository></pluginRepositories>
                    </profile>
                  </profiles>
                  <activeProfiles><activeProfile>machine</activeProfile></activeProfiles>
                </settings>
                """.formatted(repository));
        return new NewUser(home);
    }

    /** Returns the local repository of Maven. */
    Path repository() {
        return home.resolve(".m2/repository");
    }

    /** Starts a script in a directory, with both outputs in one. */
    Process start(Path directory, Map<String, String> environment, String script) throws IOException {
        ProcessBuilder shell = new ProcessBuilder("/bin/sh", "-c", "set -e\n" + script)
                .directory(directory.toFile())
                .redirectErrorStream(true);
        String java = System.getProperty("java.home");
        shell.environment()
                .putAll(Map.of(
                        "HOME",
                        home.toString(),
                        "MAVEN_OPTS",
                        "-Duser.home=" + home,
                        "JAVA25_HOME",
                        java,
                        "PATH",
                        MAVEN.resolve("bin") + ":" + java + "/bin:" + System.getenv("PATH"),
                        "NEREID",
                        InstalledServer.CHECKOUT.toString()));
        shell.environment().putAll(environment);
        return shell.start();
    }

    /** Runs a script in a directory, and returns its output and how it ended. */
    Result run(Path directory, String script) throws IOException, InterruptedException {
        return run(directory, Map.of(), script);
    }

    /** Runs a script in a directory with variables, and returns its output and how it ended. */
    Result run(Path directory, Map<String, String> environment, String script)
            throws IOException, InterruptedException {
        Process process = start(directory, environment, script);
        process.getOutputStream().close();
        String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Result(process.waitFor(), out);
    }

    /**
     * The result of a script.
     *
     * @param status its exit status
     * @param out its output
     */
    record Result(int status, String out) {
        private static final Pattern UNREACHABLE =
                Pattern.compile("Could not transfer artifact \\S+ from/to central .*");

        /** Checks that the script ended well, and returns its output. Skips the test if it needed an absent network. */
        String success() {
            Matcher unreachable = UNREACHABLE.matcher(out);
            assumeFalse(status != 0 && unreachable.find(), unreachable::group);
            assertThat(status).as(out).isZero();
            return out;
        }
    }
}
