package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class CommandRunnerTest {
    private final TestCommandContext process = new TestCommandContext(Map.of());

    @Test
    void printsItsVersion() {
        assertThat(process.run("--version")).isZero();

        assertThat(process.out()).isEqualTo("nereid 1.2.3\ncommit: abc1234\nJDK: 25 (of tests)\n");
        assertThat(process.err()).isEmpty();
    }

    @Test
    void printsHelpWithFlagsAndDefaults() {
        assertThat(process.run("serve", "--help")).isZero();

        assertThat(process.out())
                .contains("--model-repository=DIR", "--model-store", "--http-port=PORT", "Default: 8000")
                .contains("127.0.0.1", "--grpc-port=PORT", "--metrics-port=PORT", "--exit-timeout-secs=N")
                .contains("--allow-client-shm=BOOL", "--grpc-max-input-size=BYTES")
                .contains("--host-policy=POLICY,SETTING=VALUE");
        assertThat(process.err()).isEmpty();
    }

    /** Programs read the log of a server, and its errors with it. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            serve --log-format=json --model-repository=nowhere | nereid serve: --model-repository: nowhere (expected: an existing directory)
            serve --log-format json | nereid serve: --model-repository: missing (expected: --model-repository=DIR)
            serve --wrong --log-format=json | nereid serve: --wrong: unknown flag; see nereid serve --help
            demo --log-format=json --wrong | nereid demo: --wrong: unknown flag; see nereid demo --help
            serve --log-format=json --log-warning=off | nereid serve: --log-warning: false (expected: true while --log-info is true)
            """)
    void reportsErrorsInTheFormatOfTheLog(String arguments, String text) {
        assertThat(process.run(arguments.split(" "))).isNotZero();

        assertThat(process.out()).isEmpty();
        assertThat(process.err()).endsWith("}\n").containsOnlyOnce("\n");
        JsonObject line = JsonParser.parseString(process.err()).getAsJsonObject();
        assertThat(line.get("level").getAsString()).isEqualTo("ERROR");
        assertThat(line.get("message").getAsString()).isEqualTo(text);
    }

    @Test
    void findsTheFormatOfErrorsInTheEnvironment() {
        TestCommandContext logfmt = new TestCommandContext(Map.of("NEREID_LOG_FORMAT", "logfmt"));

        assertThat(logfmt.run("serve", "--wrong")).isEqualTo(2);
        assertThat(logfmt.err()).contains("msg=\"nereid serve: --wrong: unknown flag");

        TestCommandContext unknown = new TestCommandContext(Map.of("NEREID_LOG_FORMAT", "xml"));
        assertThat(unknown.run("serve")).isEqualTo(2);
        assertThat(unknown.err()).startsWith("nereid serve: --log-format: 'xml'");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            serve --wrong | nereid serve: --wrong: unknown flag; see nereid serve --help
            serve --wrong=1 | nereid serve: --wrong: unknown flag; see nereid serve --help
            serve --htpp-port=1 | nereid serve: --htpp-port: unknown flag (did you mean --http-port?); see nereid serve --help
            serve --allow-sagemaker=true | nereid serve: --allow-sagemaker: 'true' (expected: false: there is no SageMaker endpoint; the HTTP port serves the KServe protocol); see nereid serve --help
            serve --allow-vertex-ai=1 | nereid serve: --allow-vertex-ai: '1' (expected: false: there is no Vertex AI endpoint; the HTTP port serves the KServe protocol); see nereid serve --help
            serve --allow-sagemaker=maybe | nereid serve: --allow-sagemaker: 'maybe' (expected: false: there is no SageMaker endpoint; the HTTP port serves the KServe protocol); see nereid serve --help
            serve --reuse-http-port=x | nereid serve: --reuse-http-port: 'x' (expected: true, on, 1, false, off or 0); see nereid serve --help
            serve --cuda-memory-pool-byte-size=64 | nereid serve: --cuda-memory-pool-byte-size: '64' (expected: the number of a GPU, a colon and a number of bytes, as in 0:67108864); see nereid serve --help
            serve models | nereid serve: 'models': unexpected (expected: flags only); see nereid serve --help
            serve --http-port=x | nereid serve: --http-port: 'x' (expected: a port from 0 to 65535, 0 for any that is free); see nereid serve --help
            serve --grpc-port 65536 | nereid serve: --grpc-port: '65536' (expected: a port from 0 to 65535, 0 for any that is free)
            serve --metrics-port=-1 | nereid serve: --metrics-port: '-1' (expected: a port from 0 to 65535, 0 for any that is free)
            serve --allow-http=0 --http-port=70000 --allow-grpc=0 --grpc-port=-1 --allow-metrics=0 --metrics-port=70000 | nereid serve: --model-repository: missing (expected: --model-repository=DIR)
            serve --allow-http=0 --http-use-ssl=1 --allow-grpc=0 --grpc-use-ssl=1 --http-address=no.where | nereid serve: --model-repository: missing (expected: --model-repository=DIR)
            serve --exit-on-error=yes | nereid serve: --exit-on-error: 'yes' (expected: true, on, 1, false, off or 0); see nereid serve --help
            serve --http-thread-count=0 | nereid serve: --http-thread-count: '0' (expected: a whole number, 1 or more); see nereid serve --help
            serve --http-max-input-size=0 | nereid serve: --http-max-input-size: '0' (expected: a number of bytes from 1 to 2147483647); see nereid serve --help
            serve --http-max-request-size=0 | nereid serve: --http-max-request-size: '0' (expected: a number of bytes, 1 or more); see nereid serve --help
            serve --http-header-forward-pattern=( | nereid serve: --http-header-forward-pattern: '(' (expected: a regular expression); see nereid serve --help
            serve --exit-timeout-secs=soon | nereid serve: --exit-timeout-secs: 'soon' (expected: a whole number of seconds); see nereid serve --help
            serve --model-control-mode=some | nereid serve: --model-control-mode: 'some' (expected: none, poll, explicit or demand); see nereid serve --help
            serve --model-repository=src --load-model=m | nereid serve: --load-model: 'm' (expected: only with --model-control-mode=explicit or demand)
            serve --model-repository=src --model-control-mode=explicit --load-model=m --load-model=* | nereid serve: --load-model: [m, *] (expected: '*' alone, or names)
            serve --backend-config=x | nereid serve: --backend-config: 'x' (expected: --backend-config option format is '<backend name>,<setting>=<value>' or '<setting>=<value>'); see nereid serve --help
            serve --backend-config=,x=1 | nereid serve: --backend-config: ',x=1' (expected: --backend-config option format is '<backend name>,<setting>=<value>' or '<setting>=<value>'); see nereid serve --help
            serve --http-port | nereid serve: --http-port: missing (expected: --http-port=PORT); see nereid serve --help
            serve | nereid serve: --model-repository: missing (expected: --model-repository=DIR)
            serve --model-repository=nowhere | nereid serve: --model-repository: nowhere (expected: an existing directory)
            serve --model-store nowhere | nereid serve: --model-repository: nowhere (expected: an existing directory)
            serve --model-repository=src --backend-directory=nowhere | nereid serve: --backend-directory: nowhere (expected: an existing directory)
            serve --backend-config=x= | nereid serve: --backend-config: 'x=' (expected: --backend-config option format is '<backend name>,<setting>=<value>' or '<setting>=<value>'); see nereid serve --help
            serve --grpc-restricted-protocol=health | nereid serve: --grpc-restricted-protocol: 'health' (expected: group[,group...]:header=secret)
            serve --grpc-restricted-protocol=model-reposit,health:k=v --grpc-restricted-protocol=metadata,health:k=v | nereid serve: --grpc-restricted-protocol: unknown restricted protocol 'model-reposit' (expected: one of [health, metadata, inference, shared-memory, model-config, model-repository, statistics, trace, logging])
            serve --allow-grpc=0 --grpc-restricted-protocol=model-repository,health:k=v --grpc-restricted-protocol=metadata,health:k=v | nereid serve: --grpc-restricted-protocol: restricted protocol 'health' can not be specified in multiple config groups
            serve --grpc-header-forward-pattern=( | nereid serve: --grpc-header-forward-pattern: '(' (expected: a regular expression); see nereid serve --help
            serve --grpc-infer-thread-count=1 | nereid serve: --grpc-infer-thread-count: '1' (expected: a whole number from 2 to 128); see nereid serve --help
            serve --grpc-infer-allocation-pool-size=-1 | nereid serve: --grpc-infer-allocation-pool-size: '-1' (expected: a whole number, 0 or more); see nereid serve --help
            serve --grpc-max-input-size=0 | nereid serve: --grpc-max-input-size: '0' (expected: a number of bytes from 1 to 2147483647); see nereid serve --help
            serve --grpc-max-response-pool-size=0 | nereid serve: --grpc-max-response-pool-size: '0' (expected: a whole number, 1 or more); see nereid serve --help
            serve --grpc-infer-response-compression-level=max | nereid serve: --grpc-infer-response-compression-level: 'max' (expected: none, low, medium or high); see nereid serve --help
            serve --grpc-max-connection-age=-1 | nereid serve: --grpc-max-connection-age: '-1' (expected: a whole number of milliseconds, 0 or more); see nereid serve --help
            serve --model-repository=src --grpc-use-ssl=1 | nereid serve: --grpc-server-cert: missing (expected: --grpc-server-cert=FILE, required by --grpc-use-ssl)
            serve --model-repository=src --grpc-use-ssl=1 --grpc-server-cert=c | nereid serve: --grpc-server-key: missing (expected: --grpc-server-key=FILE, required by --grpc-use-ssl)
            serve --model-repository=src --grpc-use-ssl-mutual=1 --grpc-server-cert=c --grpc-server-key=k | nereid serve: --grpc-root-cert: missing (expected: --grpc-root-cert=FILE, required by --grpc-use-ssl)
            serve --model-repository=src --http-port=9 --grpc-port=9 | nereid serve: --grpc-port: 9 (expected: another port than --http-port)
            serve --model-repository=src --metrics-port=8000 | nereid serve: --metrics-port: 8000 (expected: another port than --http-port)
            serve --http-restricted-api=wealth:a=b | nereid serve: --http-restricted-api: unknown restricted api 'wealth' (expected: one of [health, metadata, inference, shared-memory, model-config, model-repository, statistics, trace, logging])
            serve --http-restricted-api=health:a=b --http-restricted-api=health:c=d | nereid serve: --http-restricted-api: restricted api 'health' can not be specified in multiple config groups
            serve --http-use-ssl=1 | nereid serve: --http-server-cert: missing (expected: --http-server-cert=FILE)
            serve --http-use-ssl=1 --http-server-cert=a | nereid serve: --http-server-key: missing (expected: --http-server-key=FILE)
            serve --http-use-ssl-mutual=1 --http-server-cert=a --http-server-key=b | nereid serve: --http-root-cert: missing (expected: --http-root-cert=FILE)
            serve --host-policy=cpu | nereid serve: --host-policy: 'cpu' (expected: policy,cpu-cores=0-3,8 or policy,numa-node=N); see nereid serve --help
            serve --log-warning=off | nereid serve: --log-warning: false (expected: true while --log-info is true)
            serve --log-info=0 --log-error=0 | nereid serve: --log-error: false (expected: true while --log-warning is true)
            demo --wrong | nereid demo: --wrong: unknown flag; see nereid demo --help
            serve --disable-auto-complete-config=1 | nereid serve: --disable-auto-complete-config: '1' (expected: no value); see nereid serve --help
            walk | nereid: 'walk': unknown command (expected: serve, demo, check, models, load, unload or config); see nereid --help
            check | nereid check: REPOSITORY: missing; see nereid check --help
            check nowhere | nereid check: REPOSITORY: 'nowhere' (expected: an existing directory with a directory for each model); see nereid check --help
            check pom.xml --json | nereid check: REPOSITORY: 'pom.xml' (expected: an existing directory with a directory for each model); see nereid check --help
            check src --backend-directory=nowhere | nereid check: --backend-directory: nowhere (expected: an existing directory)
            check src --http-port=1 | nereid check: --http-port: unknown flag; see nereid check --help
            models all | nereid models: 'all': unexpected (expected: flags only); see nereid models --help
            models --url=localhost:8000 | nereid models: --url: 'localhost:8000' (expected: http://HOST[:PORT] or https://HOST[:PORT]); see nereid models --help
            models --url=http://a:70000 | nereid models: --url: 'http://a:70000' (expected: http://HOST[:PORT] or https://HOST[:PORT]); see nereid models --help
            models --header=secret | nereid models: --header: 'secret' (expected: the name of a header, a colon and its value); see nereid models --help
            models --header=Host:a | nereid models: --header: 'Host:a' (expected: the name of a header, a colon and its value); see nereid models --help
            models --timeout-secs=0 | nereid models: --timeout-secs: '0' (expected: a whole number, 1 or more); see nereid models --help
            load | nereid load: MODEL: missing; see nereid load --help
            load a b | nereid load: 'b': unexpected (expected: one MODEL); see nereid load --help
            load a --config=nowhere | nereid load: --config: 'nowhere' (expected: an existing file); see nereid load --help
            load a --config=src | nereid load: --config: 'src' (expected: an existing file); see nereid load --help
            load a --file=1/model.onnx | nereid load: --file: '1/model.onnx' (expected: a path in the model's directory, =, and the name of a file); see nereid load --help
            load a --config={} --file=1/model.onnx=/dev/null | nereid load: --file: '/dev/null' (expected: an existing file); see nereid load --help
            unload | nereid unload: MODEL: missing; see nereid unload --help
            unload a --dependents=1 | nereid unload: --dependents: '1' (expected: no value); see nereid unload --help
            config | nereid config: MODEL: missing; see nereid config --help
            config a --version=x | nereid config: --version: 'x' (expected: a whole number, 0 or more); see nereid config --help
            --wrong | nereid: '--wrong': unknown command (expected: serve, demo, check, models, load, unload or config); see nereid --help
            """)
    void reportsInOneLineWhatIsWrong(String arguments, String line) {
        int status = process.run(arguments.split(" "));

        assertThat(status).isNotZero();
        assertThat(process.err()).isEqualTo(line + "\n");
        assertThat(process.out()).isEmpty();
    }

    @Test
    void namesThePluginThatARemoteRepositoryNeeds() {
        assertThat(process.run("serve", "--model-repository=nas://box/models")).isNotZero();

        assertThat(process.err())
                .startsWith("nereid serve: model repository 'nas://box/models': no plugin for 'nas://' (expected: a"
                        + " directory, or the URL of an installed storage); Nereid has a plugin for 's3://' alone: copy"
                        + " the models to a directory, or install a plugin of others as directory 'nas' in one of [")
                .endsWith("storage]\n");
    }

    @Test
    void listsItsCommands() {
        assertThat(process.run("--help")).isZero();

        assertThat(process.out())
                .contains("nereid serve --model-repository=DIR [FLAG]...\n", "nereid demo [--exit] [FLAG]...\n")
                .contains("nereid check REPOSITORY... [FLAG]...\n", "nereid models [FLAG]...\n")
                .contains("nereid load MODEL [FLAG]...\n", "nereid unload MODEL [FLAG]...\n")
                .contains("nereid config MODEL [FLAG]...\n");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            serve | --http-port=PORT,NEREID_HTTP_PORT stands for --http-port.
            demo | --exit,NEREID_HTTP_PORT stands for --http-port.
            check | --load,--json,--verbose,--log,--backend-directory=DIR,--model-config-name=NAME,NEREID_MODEL_CONFIG_NAME stands for --model-config-name.,Exit codes: 0 every model is valid; 1 a model is not; 2 wrong command line
            models | --json,--url=URL,--header=NAME:VALUE,--timeout-secs=N,Default: http://localhost:8000,NEREID_URL stands for --url.,Exit codes: 0 success; 1 no server
            load | --config=FILE,--file=PATH=FILE,--url=URL,NEREID_URL stands for --url.
            unload | --dependents,--url=URL,NEREID_URL stands for --url.
            config | --version=N,--pbtxt,--url=URL,NEREID_URL stands for --url.
            """)
    void printsHelpOfACommand(String command, String parts) {
        assertThat(process.run(command, "--help")).isZero();

        assertThat(process.out()).contains(parts.split(","));
        assertThat(process.err()).isEmpty();
    }

    @Test
    void requiresACommand() {
        assertThat(process.run()).isNotZero();

        assertThat(process.err())
                .isEqualTo(
                        "nereid: no command (expected: serve, demo, check, models, load, unload or config); see nereid --help\n");
    }

    @Test
    void requiresAConfigurationBesideFiles() {
        assertThat(process.run("load", "a", "--file=1/model.onnx=pom.xml")).isEqualTo(2);

        assertThat(process.err())
                .isEqualTo("nereid load: --config: missing (expected: --config=FILE|JSON, required by --file);"
                        + " see nereid load --help\n");
    }

    @Test
    void takesOperandsThatLookLikeFlagsAfterTwoDashes() {
        assertThat(process.run("check", "--", "--json")).isEqualTo(2);

        assertThat(process.err()).startsWith("nereid check: REPOSITORY: '--json' (expected: an existing directory");
    }

    @Test
    void takesWhatBelongsToOneCommandLineFromNoEnvironment() {
        TestCommandContext set = new TestCommandContext(
                Map.of("NEREID_VERSION", "x", "NEREID_CONFIG", "x", "NEREID_FILE", "x", "NEREID_URL", "nonsense"));

        set.run("config", "m");
        set.run("load", "m");

        assertThat(set.err().lines()).hasSize(2).allMatch(line -> line.contains(": --url: 'nonsense' (expected: "));
    }

    @Test
    void takesFlagsFromTheEnvironmentUnlessGiven() {
        TestCommandContext set = new TestCommandContext(Map.of("NEREID_HTTP_PORT", "x"));

        set.run("serve", "--model-repository=nowhere");
        set.run("serve", "--model-repository=nowhere", "--http-port=1");

        assertThat(set.err().lines())
                .containsExactly(
                        "nereid serve: --http-port: 'x' (expected: a port from 0 to 65535, 0 for any that is free);"
                                + " see nereid serve --help",
                        "nereid serve: --model-repository: nowhere (expected: an existing directory)");
    }

    @ParameterizedTest
    @CsvSource({
        "'', info warn",
        "--log-verbose=1, debug warn",
        "--log-verbose=2, trace warn",
        "--log-verbose=true, debug warn",
        "--log-info=FALSE, warn warn",
        "--log-info=Off --log-warning=0, error error",
        "--log-info=0 --log-warning=0 --log-error=0, off off",
    })
    void setsTheLevelsOfTheLogBeforeAnythingElse(String flags, String levels) {
        process.run(("serve --model-repository=nowhere " + flags).strip().split(" "));

        assertThat(process.logLevels).containsExactly(levels);
    }
}
