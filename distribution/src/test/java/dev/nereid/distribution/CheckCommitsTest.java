package dev.nereid.distribution;

import static java.util.Map.entry;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.distribution.testing.MarkdownPage;
import dev.nereid.distribution.testing.TestPaths;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs {@code .ci/check-commits} in a repository with commits of its tests. */
final class CheckCommitsTest {
    private static final String SCRIPT = ".ci/check-commits";
    private static final int MAX_SUBJECT = 72;
    private static final String RIGHT = "scheduler: wake the leader";
    private static final String WRONG = "scheduler: wakes the leader";

    @TempDir
    private Path directory;

    private Path repository;

    @BeforeEach
    void createRepository() throws IOException, InterruptedException {
        boolean isInstalled = programs("git").findAny().isPresent();
        assumeTrue(isInstalled || System.getenv("CI") != null, "not installed: git");
        repository = directory.toRealPath().resolve("repository");
        copyScript(repository);
        git("init", "--quiet", "--initial-branch=main");
        git("add", ".");
        commit("Everything that was there before.");
        git("checkout", "--quiet", "-b", "branch");
    }

    @Test
    void acceptsMessages() throws IOException, InterruptedException {
        List<String> messages = List.of(
                RIGHT,
                "backend-onnx-gpu: name the driver",
                "all: process, pass, need and bring what was there",
                "docs: move notes to docs/design, and results to benchmarks/results",
                "build: set `release` to 25 (again)\n\nThe compiler of Maven's JVM may be older.\n\nA second paragraph.",
                "ci: install git\n\nhttps://example.com/an/address/of/more/than/a/hundred/characters/"
                        + "which/is/one/word/and/cannot/be/divided/into/lines");
        for (String message : messages) {
            commit(message);
        }

        assertThat(check()).isEqualTo(new Result(0, SCRIPT + ": " + messages.size() + " messages checked\n"));
    }

    @Test
    void reportsFaultsOfSubjects() throws IOException, InterruptedException {
        Map<String, String> faults = Map.ofEntries(
                entry("wake the leader", "subject: no module (expected: 'module: imperative summary')"),
                entry("scheduler:wake the leader", "subject: no module"),
                entry("scheduler: wake the leader.", "subject: ends with a period (expected: no period)"),
                entry("Scheduler: wake the leader", "module: 'Scheduler' (expected: one module of pom.xml"),
                entry("scheduler, server: wake it", "module: 'scheduler, server' (expected: one module"),
                entry("all build: wake the leader", "module: 'all build' (expected: one module"),
                entry("scheduler: Wake the leader", "summary: begins with 'Wake' (expected: a verb in lower case)"),
                entry(WRONG, "summary: begins with 'wakes' (expected: a verb in the imperative, such as 'add')"),
                entry("scheduler: added a leader", "summary: begins with 'added'"),
                entry("scheduler: waking the leader", "summary: begins with 'waking'"),
                entry("scheduler: the leader is awake", "summary: begins with 'the'"));
        for (String message : faults.keySet()) {
            commit(message);
        }

        Result result = check();

        assertThat(result.status()).isEqualTo(1);
        faults.forEach((message, fault) -> assertThat(result.out()).contains(" " + message + "\n    " + fault));
    }

    @Test
    void reportsFaultsOfBodies() throws IOException, InterruptedException {
        commit(RIGHT + "\nwithout a blank line\n" + "word ".repeat(25));

        assertThat(check().out())
                .contains(
                        "    line 2: 'without a blank line' (expected: a blank line)\n",
                        "    line 3: 124 characters (expected: at most 120)\n");
    }

    @Test
    void countsCharactersOfSubjects() throws IOException, InterruptedException {
        String longest = RIGHT + " " + "ü".repeat(MAX_SUBJECT - RIGHT.length() - 1);
        commit(longest);
        assertThat(check().status()).isZero();

        commit(longest + "–");
        assertThat(check().out()).contains("subject: 73 characters (expected: at most 72)");
    }

    @Test
    void namesTheCommitAndTheCommandsThatCorrectIt() throws IOException, InterruptedException {
        commit(WRONG);
        String wrong = git("rev-parse", "HEAD").strip().substring(0, 10);
        commit(RIGHT);

        Result result = check();

        assertThat(result.status()).isEqualTo(1);
        assertThat(result.out())
                .startsWith(wrong + " " + WRONG + "\n")
                .contains(": 1 of 2 messages are wrong.", "git commit --amend", "git rebase -i " + wrong + "^,");
    }

    @Test
    void checksCommitsOutsideMainAlone() throws IOException, InterruptedException {
        git("checkout", "--quiet", "main");
        commit(WRONG);
        assertThat(check()).isEqualTo(skipped("main has every commit (a range such as HEAD~3.. checks others)"));

        git("checkout", "--quiet", "branch");
        git("merge", "--quiet", "--no-edit", "--no-ff", "main");
        commit(RIGHT);
        assertThat(check().out()).isEqualTo(SCRIPT + ": 1 messages checked\n");
    }

    @Test
    void checksCommitsOfMainThatAreNotPushed() throws IOException, InterruptedException {
        git("checkout", "--quiet", "main");
        git("update-ref", "refs/remotes/origin/main", "HEAD");
        commit(WRONG);

        assertThat(check().status()).isEqualTo(1);
    }

    @Test
    void checksRanges() throws IOException, InterruptedException {
        commit(WRONG);
        commit(RIGHT);

        assertThat(check("HEAD~1..").status()).isZero();
        assertThat(check("main..HEAD").status()).isEqualTo(1);
    }

    @Test
    void refusesArguments() throws IOException, InterruptedException {
        assertThat(check("--mesage", "FILE"))
                .isEqualTo(refused("'--mesage FILE' (expected: --message FILE or a range such as HEAD~3..)"));
        assertThat(check("HEAD")).isEqualTo(refused("'HEAD' (expected: --message FILE or a range such as HEAD~3..)"));
        assertThat(check("missing..")).isEqualTo(refused("'missing..' (expected: commits of this repository)"));
        assertThat(check("--message")).isEqualTo(refused("--message: 0 arguments (expected: one file)"));
        assertThat(check("--message", "missing"))
                .isEqualTo(refused("--message: 'missing' (expected: a file that can be read)"));
    }

    @Test
    void skipsShallowClones() throws IOException, InterruptedException {
        commit(WRONG);
        git(
                "clone",
                "--quiet",
                "--depth=1",
                "file://" + repository,
                directory.resolve("clone").toString());
        repository = directory.resolve("clone");

        assertThat(check())
                .isEqualTo(
                        skipped("shallow clone: the commits of main are not known (git fetch --unshallow gets them)"));
    }

    @Test
    void skipsRepositoriesWithoutMain() throws IOException, InterruptedException {
        git("branch", "--quiet", "--move", "main", "trunk");

        assertThat(check()).isEqualTo(skipped("no branch main to compare with (a range such as HEAD~3.. needs none)"));
    }

    @Test
    void skipsDirectoriesOutsideRepositories() throws IOException, InterruptedException {
        Path outer = repository;
        repository = directory.resolve("unpacked");
        copyScript(repository);
        assertThat(check().out()).startsWith(SCRIPT + ": skipped: no repository: ");

        repository = outer.resolve("unpacked");
        copyScript(repository);
        assertThat(check()).isEqualTo(skipped("no repository: " + repository + " belongs to " + outer));
    }

    @Test
    void skipsMachinesWithoutGit() throws IOException, InterruptedException {
        Path programs = Files.createDirectory(directory.resolve("programs"));
        for (String program : List.of("bash", "dirname", "sed", "tr")) {
            Path wrapper =
                    Files.writeString(programs.resolve(program), "#!/bin/sh\nexec " + find(program) + " \"$@\"\n");
            assertThat(wrapper.toFile().setExecutable(true)).isTrue();
        }
        commit(WRONG);

        Result result = run(Map.of("PATH", programs.toString()), SCRIPT);

        assertThat(result).isEqualTo(skipped("git is not installed"));
    }

    @Test
    void checksMessagesAsTheHookOfTheGuideForContributors() throws IOException, InterruptedException {
        MarkdownPage guide =
                new MarkdownPage(Files.readString(TestPaths.checkout().resolve("CONTRIBUTING.md")));
        for (String command : guide.section("Commits").commands()) {
            assertThat(run(Map.of(), "sh", "-e", "-c", command).status()).isZero();
        }

        Result refused = run(Map.of(), "git", "commit", "--quiet", "--allow-empty", "-m", WRONG);
        assertThat(refused.status()).isEqualTo(1);
        assertThat(refused.out())
                .isEqualTo(WRONG
                        + "\n    summary: begins with 'wakes' (expected: a verb in the imperative, such as 'add')\n"
                        + SCRIPT
                        + ": no commit was made. To correct the message: git commit -e -F '.git/COMMIT_EDITMSG'\n");
        assertThat(git("log", "--format=%s", "main..")).isEmpty();

        commit(RIGHT);
        git("commit", "--quiet", "--allow-empty", "--fixup=HEAD");
        git("checkout", "--quiet", "main");
        commit(RIGHT);
        git("merge", "--quiet", "--no-ff", "--no-edit", "branch");
    }

    @Test
    void ignoresCommentsAndChangesInMessages() throws IOException, InterruptedException {
        Path message = Files.writeString(
                directory.resolve("message"),
                RIGHT + "\n# A comment\n\nA body.\n# ------------------------ >8 ------------------------\n"
                        + "diff --git a/a b/a\n" + "+ word".repeat(40) + "\n");

        assertThat(check("--message", message.toString())).isEqualTo(new Result(0, ""));
    }

    private static Result skipped(String reason) {
        return new Result(0, SCRIPT + ": skipped: " + reason + "\n");
    }

    private static Result refused(String error) {
        return new Result(2, SCRIPT + ": " + error + "\n");
    }

    private static void copyScript(Path target) throws IOException {
        Files.createDirectories(target.resolve(".ci"));
        Files.copy(TestPaths.checkout().resolve(SCRIPT), target.resolve(SCRIPT), StandardCopyOption.COPY_ATTRIBUTES);
        Files.copy(TestPaths.checkout().resolve("pom.xml"), target.resolve("pom.xml"));
    }

    private void commit(String message) throws IOException, InterruptedException {
        git("commit", "--quiet", "--allow-empty", "-m", message);
    }

    private String git(String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("git"));
        command.addAll(List.of(arguments));
        Result result = run(Map.of(), command.toArray(String[]::new));
        assertThat(result.status()).as(result.out()).isZero();
        return result.out();
    }

    private Result check(String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(SCRIPT));
        command.addAll(List.of(arguments));
        return run(Map.of(), command.toArray(String[]::new));
    }

    private Result run(Map<String, String> environment, String... command) throws IOException, InterruptedException {
        ProcessBuilder builder =
                new ProcessBuilder(command).directory(repository.toFile()).redirectErrorStream(true);
        Map<String, String> variables = builder.environment();
        variables.keySet().removeIf(name -> name.startsWith("GIT_")); // such as those of a hook that runs this test
        variables.putAll(Map.of(
                "GIT_CONFIG_GLOBAL", "/dev/null",
                "GIT_CONFIG_NOSYSTEM", "1",
                "GIT_AUTHOR_NAME", "A",
                "GIT_AUTHOR_EMAIL", "a@example.com",
                "GIT_COMMITTER_NAME", "A",
                "GIT_COMMITTER_EMAIL", "a@example.com"));
        variables.putAll(environment);
        Process process = builder.start();
        process.getOutputStream().close();
        String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Result(process.waitFor(), out);
    }

    private static Path find(String program) {
        return programs(program).findFirst().orElseThrow();
    }

    private static Stream<Path> programs(String name) {
        return Stream.of(System.getenv("PATH").split(":", -1))
                .map(path -> Path.of(path, name))
                .filter(Files::isExecutable);
    }

    private record Result(int status, String out) {}
}
