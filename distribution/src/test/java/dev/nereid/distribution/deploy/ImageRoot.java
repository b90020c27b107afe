package dev.nereid.distribution.deploy;

import com.google.gson.JsonObject;
import dev.nereid.distribution.testing.InstalledServer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * An image that {@code src/image/assemble} made, unpacked. In place of a container engine, a mount namespace and
 * {@code chroot} run it: read-only, by a user that it does not know, without a home directory, and with 64 MB in
 * {@code /dev/shm} as engines have it. Immutable.
 *
 * @param layout the unpacked archive
 * @param directory the root directory of the image
 */
record ImageRoot(OciLayout layout, Path directory) {
    static final Path ASSEMBLE = InstalledServer.CHECKOUT.resolve("distribution/src/image/assemble");

    /** The user and group that run it. */
    static final String FOREIGN_USER = "54321:54321";

    /** Makes an image, or an image and an archive, as version {@code test}. */
    static void assemble(Path output, String... options) throws Exception {
        List<String> command = new ArrayList<>(List.of(
                "env",
                "JAVA_HOME=" + System.getProperty("java.home"),
                ASSEMBLE.toString(),
                InstalledServer.HOME.toString(),
                output.toString(),
                "test"));
        command.addAll(List.of(options));
        Tool.succeed(Path.of("/"), command.toArray(String[]::new));
    }

    /** Unpacks an image into new directories of a directory. */
    static ImageRoot unpack(Path image, Path directory) throws Exception {
        Path layout = Files.createDirectory(directory.resolve("layout"));
        Tool.succeed(layout, "tar", "-xf", image.toString());
        Path root = Files.createDirectory(directory.resolve("root"));
        ImageRoot unpacked = new ImageRoot(new OciLayout(layout), root);
        unpacked.layout().unpackTo(root);
        return unpacked;
    }

    /** Returns the part of its name that names the processor. */
    static String machine() {
        return System.getProperty("os.arch").equals("aarch64") ? "aarch64" : "x86_64";
    }

    /** Adds the models of a directory to those that the image serves. */
    void addModels(Path models) throws Exception {
        Tool.succeed(
                directory,
                "cp",
                "-r",
                models + "/.",
                directory.resolve("models").toString());
    }

    /** Starts the command of the image on local addresses, with output to a file; see {@link #command}. */
    Process serve(String execution, Path log, String... flags) throws Exception {
        JsonObject config = layout.config().getAsJsonObject("config");
        List<String> command = command(execution);
        command.addAll(OciLayout.strings(config.getAsJsonArray("Entrypoint")));
        OciLayout.strings(config.getAsJsonArray("Cmd")).stream()
                .filter(argument -> !argument.contains("-address="))
                .forEach(command::add);
        command.addAll(List.of("--grpc-port=0", "--metrics-port=0"));
        command.addAll(List.of(flags));
        return new ProcessBuilder(command)
                .directory(directory.toFile())
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
    }

    /**
     * Returns what begins a command that runs in the image as in container engines with {@code --read-only} and
     * {@code --tmpfs /tmp}.
     *
     * @param execution whether files in the mounted directory may be executed: {@code exec} or {@code noexec}
     */
    List<String> command(String execution) throws Exception {
        List<String> command = new ArrayList<>(List.of(
                "unshare",
                "--mount",
                "sh",
                "-c",
                "set -e; mount --bind . .; cd \"$PWD\"; mount -o remount,ro,bind .;"
                        + " mount -t tmpfs -o mode=1777," + execution
                        + " tmpfs tmp; mount -t proc proc proc; mount --rbind /dev dev;"
                        + " mount -t tmpfs -o mode=1777,size=64m tmpfs dev/shm;"
                        + " ! touch opt/file 2>/dev/null; exec env -i \"$@\"",
                "sh"));
        command.addAll(
                OciLayout.strings(layout.config().getAsJsonObject("config").getAsJsonArray("Env")));
        command.addAll(List.of("/usr/sbin/chroot", "--userspec=" + FOREIGN_USER, "."));
        return command;
    }
}
