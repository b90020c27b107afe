package dev.nereid.plugin.agent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.plugin.AgentLease;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.agent.AgentContext;
import dev.nereid.spi.agent.RepositoryAgent;
import dev.nereid.spi.agent.RepositoryAgentProvider;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class AgentChainTest {
    private final List<String> events = new ArrayList<>();
    private final List<Path> workDirectories = new ArrayList<>();

    @TempDir
    private Path root;

    private Path model;

    @BeforeEach
    void createModel() throws IOException {
        model = Files.createDirectories(root.resolve("m"));
    }

    @Test
    void callsTheHooksInTheOrderOfTheReference() {
        AgentChain chain = chain("a", "b");

        assertThat(chain.load(model)).isEqualTo(model);
        chain.loadComplete();
        assertThat(events).containsExactly("create a", "load a m", "create b", "load b m", "complete b", "complete a");
        events.clear();
        chain.unload();
        events.add("unloaded");
        chain.unloadComplete();
        assertThat(events)
                .containsExactly(
                        "unload a",
                        "unload b",
                        "unloaded",
                        "unloadComplete b",
                        "unloadComplete a",
                        "close b",
                        "release b",
                        "close a",
                        "release a");
    }

    @Test
    void tellsTheAgentsThatTheLoadFailedLater() {
        AgentChain chain = chain("a", "b");
        chain.load(model);
        events.clear();

        chain.loadFail();

        assertThat(events).containsExactly("fail b", "fail a", "close b", "release b", "close a", "release a");
    }

    @Test
    void callsNoFurtherAgentAfterOneThatFails() {
        AgentChain chain = chain("a", "failing", "b");

        assertThatThrownBy(() -> chain.load(model))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND))
                .hasMessage("no key for it (repository agent 'failing')");
        assertThat(events)
                .containsExactly(
                        "create a",
                        "load a m",
                        "create failing",
                        "load failing m",
                        "fail failing",
                        "fail a",
                        "close failing",
                        "release failing",
                        "close a",
                        "release a");
    }

    @Test
    void tellsNothingToAnAgentThatCouldNotBeCreated() {
        AgentChain chain = chain("a", "refusing");

        assertThatThrownBy(() -> chain.load(model))
                .isInstanceOf(InferenceException.class)
                .hasMessage("parameter x: unknown (repository agent 'refusing')");
        assertThat(events)
                .containsExactly(
                        "create a",
                        "load a m",
                        "create refusing",
                        "release refusing",
                        "fail a",
                        "close a",
                        "release a");
    }

    @Test
    void failsForAnAgentThatIsUnknown() {
        AgentChain chain = chain("a", "unknown");

        assertThatThrownBy(() -> chain.load(model)).hasMessage("no agent unknown");
        assertThat(events).endsWith("fail a", "close a", "release a");
    }

    @Test
    void passesEachAgentTheDirectoryOfTheOneBefore() {
        AgentChain chain = chain("moving", "a");

        Path loaded = chain.load(model);

        assertThat(loaded).isEqualTo(workDirectories.getFirst()).isDirectory();
        assertThat(events).contains("load moving m", "load a " + loaded.getFileName());
        chain.loadComplete();
        chain.unload();
        assertThat(loaded).isDirectory();
        chain.unloadComplete();
        assertThat(loaded).doesNotExist();
    }

    @Test
    void deletesTheDirectoryOfAnAgentAfterAFailedLoad() throws IOException {
        Path kept = Files.writeString(root.resolve("kept"), "text");
        AgentChain chain = chain("moving", "failing");

        assertThatThrownBy(() -> chain.load(model)).isInstanceOf(InferenceException.class);

        assertThat(workDirectories.getFirst()).doesNotExist();
        assertThat(kept).exists();
    }

    @Test
    void refusesAResultThatIsNoDirectory() {
        assertThatThrownBy(() -> chain("lost").load(model))
                .hasMessage(
                        "the result is no directory (expected: a directory with the model) (repository agent 'lost')");
    }

    @Test
    void doesNothingWithoutAgents() {
        AgentChain chain = chain();

        assertThat(chain.isEmpty()).isTrue();
        assertThat(chain.load(model)).isEqualTo(model);
        chain.loadComplete();
        chain.unload();
        chain.unloadComplete();
        assertThat(events).isEmpty();
    }

    @Test
    void refusesHooksOutOfOrder() {
        AgentChain chain = chain("a");

        assertThatIllegalStateException().isThrownBy(chain::loadComplete);
        chain.load(model);
        assertThatIllegalStateException().isThrownBy(chain::unload);
        chain.loadComplete();
        assertThatIllegalStateException().isThrownBy(chain::loadFail);
        assertThatIllegalStateException().isThrownBy(chain::unloadComplete);
    }

    @Test
    void passesModelParametersAndConfiguration() {
        List<AgentContext> contexts = new ArrayList<>();
        AgentChain chain = new AgentChain(
                "m",
                List.of(new AgentChain.Configured("a", Map.of("key", "value"))),
                () -> "{}",
                name -> new AgentLease(new Recording(name, contexts), () -> {}));

        chain.load(model);

        AgentContext context = contexts.getFirst();
        assertThat(context.modelName()).isEqualTo("m");
        assertThat(context.parameters()).isEqualTo(Map.of("key", "value"));
        assertThat(context.configJson()).isEqualTo("{}");
        assertThat(context.logger().getName()).isEqualTo("nereid.agent.a.m");
    }

    private AgentChain chain(String... agents) {
        return new AgentChain(
                "m",
                Stream.of(agents)
                        .map(name -> new AgentChain.Configured(name, Map.of()))
                        .toList(),
                () -> "{}",
                this::acquire);
    }

    private AgentLease acquire(String name) {
        if (name.equals("unknown")) {
            throw new BackendException(ErrorCode.INVALID_ARGUMENT, "no agent unknown");
        }
        return new AgentLease(new Recording(name, new ArrayList<>()), () -> events.add("release " + name));
    }

    /** An agent that records its hooks. Its name says what it does at a load. */
    private final class Recording implements RepositoryAgentProvider {
        private final String name;
        private final List<AgentContext> contexts;

        Recording(String name, List<AgentContext> contexts) {
            this.name = name;
            this.contexts = contexts;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public RepositoryAgent create(AgentContext context) {
            contexts.add(context);
            events.add("create " + name);
            if (name.equals("refusing")) {
                throw new BackendException(ErrorCode.INVALID_ARGUMENT, "parameter x: unknown");
            }
            return new RepositoryAgent() {
                @Override
                public Path load(Path directory) {
                    events.add("load " + name + " " + directory.getFileName());
                    return switch (name) {
                        case "failing" -> throw new BackendException(ErrorCode.NOT_FOUND, "no key for it");
                        case "lost" -> directory.resolve("none");
                        case "moving" -> move(context);
                        default -> directory;
                    };
                }

                @Override
                public void loadComplete() {
                    events.add("complete " + name);
                }

                @Override
                public void loadFail() {
                    events.add("fail " + name);
                }

                @Override
                public void unload() {
                    events.add("unload " + name);
                }

                @Override
                public void unloadComplete() {
                    events.add("unloadComplete " + name);
                }

                @Override
                public void close() {
                    events.add("close " + name);
                }
            };
        }

        /** Fills the agent's directory, with a link that leads out of it. */
        private Path move(AgentContext context) {
            Path directory = context.workDirectory();
            assertThat(context.workDirectory()).isEqualTo(directory);
            workDirectories.add(directory);
            try {
                assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(directory)))
                        .isEqualTo("rwx------");
                Files.createDirectories(directory.resolve("1/deep"));
                Files.writeString(directory.resolve("1/deep/file"), "text");
                Files.createSymbolicLink(directory.resolve("out"), root);
            } catch (IOException e) {
                throw new AssertionError(e);
            }
            return directory;
        }
    }
}
