#!/usr/bin/env bash
# Fetch Spark's Kafka connector and a Kafka broker with Maven, for tests/end_to_end/test_kafka.py.
# Usage: scripts/get_kafka.sh [FOLDER]     then: WEFT_KAFKA_JARS=FOLDER make test
# There is no connector for Spark 4.3 to be had yet (November 2026), and of the token provider that
# it needs only 4.0.0; this pair works with Spark 4.3.
set -euo pipefail
folder="${1:-${WEFT_KAFKA_JARS:-$HOME/.cache/weft/kafka}}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# checksum, part, and the jar's path in a Maven repository: group/artifact/version/file
cat > "$work/jars" <<'JARS'
22d1d4316c4ec13a68b559e98c8256d69071593731da96136640f864fa14fad8 broker org/hdrhistogram/HdrHistogram/2.2.2/HdrHistogram-2.2.2.jar
65ceb669d88f63306c680f8088bbf765bbca72d288a61a03703000076c3d3f56 broker net/sourceforge/argparse4j/argparse4j/0.7.0/argparse4j-0.7.0.jar
ec411dfdf0c03f25218648ce89861630b71680e5858a9a7278ebac8e55cab3d7 broker com/github/ben-manes/caffeine/caffeine/3.2.0/caffeine-3.2.0.jar
7d938c81789028045c08c065e94be75fc280527620d5bd62b519d5838532368a broker commons-beanutils/commons-beanutils/1.9.4/commons-beanutils-1.9.4.jar
eeeae917917144a68a741d4c0dff66aa5c5c5fd85593ff217bced3fc8ca783b8 broker commons-collections/commons-collections/3.2.2/commons-collections-3.2.2.jar
e0b2b980a84fc6533c5ce291f1917b32c507f62bcad64198fff44368c2196a3d broker commons-digester/commons-digester/2.1/commons-digester-2.1.jar
6b858424f518015f32bfcd1183a373f4a827d72d026b6031da0c91cf0e8f3489 broker commons-logging/commons-logging/1.3.2/commons-logging-1.3.2.jar
c3c14748e2d78db58df88808740711bd643b32c45ffa7b8a739f00fb467cd7d7 broker commons-validator/commons-validator/1.9.0/commons-validator-1.9.0.jar
23028a3fd006e530bf495f551083208187cafd8f80624d048eba56442f16a50e broker com/dynatrace/hash4j/hash4j/0.22.0/hash4j-0.22.0.jar
ead60e9cac0e42b57092b9e2d087ff43536e9477d4486ba393037a8cc156cda7 broker com/fasterxml/jackson/core/jackson-annotations/2.19.0/jackson-annotations-2.19.0.jar
da8e859bac94874528116a25f20c68560e4287acbf27628711b8a4f96b028430 broker com/fasterxml/jackson/core/jackson-core/2.19.0/jackson-core-2.19.0.jar
ceda311f476c3b18e1d2b240c94e2dcb9c8d44e70f8afa9facab88bac4ddc03a broker com/fasterxml/jackson/core/jackson-databind/2.19.0/jackson-databind-2.19.0.jar
bec1150426b0616bb488149b952b45a0dcb16d9416b017c38f6455ad9389bc68 broker com/fasterxml/jackson/dataformat/jackson-dataformat-csv/2.19.0/jackson-dataformat-csv-2.19.0.jar
46e54dcbd39d4d12cda18ec9276e7b888e08fc765ea0c77e71662306f0d4abc4 broker com/fasterxml/jackson/dataformat/jackson-dataformat-yaml/2.19.0/jackson-dataformat-yaml-2.19.0.jar
04f1a3f9da8155995dd00098d6847cdb9b7af67f4a3028c94031eff017c8e3e5 broker com/fasterxml/jackson/datatype/jackson-datatype-jdk8/2.19.0/jackson-datatype-jdk8-2.19.0.jar
df26cc58f235f477db07f753ba5a3ab243ebe5789d9f89ecf68dd62ea9a66c28 broker net/sf/jopt-simple/jopt-simple/5.0.4/jopt-simple-5.0.4.jar
7314af50cde9c99e8eaf43eee617a23edcc6bb43036221064355094999d837ef broker org/bitbucket/b_c/jose4j/0.9.6/jose4j-0.9.6.jar
1fad6e6be7557781e4d33729d49ae1cdc8fdda6fe477bb0cc68ce351eafdfbab broker org/jspecify/jspecify/1.0.0/jspecify-1.0.0.jar
00247122a572c3d3ae4eb60a50192a5811bc0181f51923d13018600f892e821d broker org/apache/kafka/kafka-clients/4.1.1/kafka-clients-4.1.1.jar
2072fc1ce7e0505149bba22a463a5909a899c6235c4fa696f15c21194a7baf60 broker org/apache/kafka/kafka-coordinator-common/4.1.1/kafka-coordinator-common-4.1.1.jar
3eb5a673b69d5992cfa86c5436f39adbf4ce284046a4c999ec6af0a8e31c5589 broker org/apache/kafka/kafka-group-coordinator/4.1.1/kafka-group-coordinator-4.1.1.jar
3d1801d2329dcf7d273796a034d61e6c7e0f851f384d0afbdd3a2e6cbd17a968 broker org/apache/kafka/kafka-group-coordinator-api/4.1.1/kafka-group-coordinator-api-4.1.1.jar
a689665751415b6456de1ecb013042cb7ba99ac68fd8c3e8bf28e098feb43218 broker org/apache/kafka/kafka-metadata/4.1.1/kafka-metadata-4.1.1.jar
4810c93d93d1935dd54de61c5ba130f501c7fe11bc49ccd3ee05ec857818a72a broker org/apache/kafka/kafka-raft/4.1.1/kafka-raft-4.1.1.jar
9f6aff422855491aad54326eca8d604163d6d3a6507cc48ffe3ce6de73caf79a broker org/apache/kafka/kafka-server/4.1.1/kafka-server-4.1.1.jar
207edecd8322cf6c13d76d84addea7fd0ec441dc8d698cf69df43210ccdc0a94 broker org/apache/kafka/kafka-server-common/4.1.1/kafka-server-common-4.1.1.jar
e6bec53428c77bf6579321836d482542a93575f7c08e860a26c9f2c7f6059dac broker org/apache/kafka/kafka-share-coordinator/4.1.1/kafka-share-coordinator-4.1.1.jar
1f85b82853eaec0143efbef7e3a4d4be8929ff83a386326431e0c2d0a557e58c broker org/apache/kafka/kafka-storage/4.1.1/kafka-storage-4.1.1.jar
8c0a712472185d706c6bf5ae24bf5d84a8e396fd4745c708e6146a415f7fa7f7 broker org/apache/kafka/kafka-storage-api/4.1.1/kafka-storage-api-4.1.1.jar
542b08fe20cf872a2d866acdff61ea338b469219dc2ebfae727a1d9ea5737e1a broker org/apache/kafka/kafka-tools-api/4.1.1/kafka-tools-api-4.1.1.jar
a261b5730ac9e3205df7af5d45180d851e9d5f729ce1275c67511a6f51f73755 broker org/apache/kafka/kafka-transaction-coordinator/4.1.1/kafka-transaction-coordinator-4.1.1.jar
e89428126cc7630a802123ba27aac4442816840b66d60670226feaff65f24fd1 broker org/apache/kafka/kafka_2.13/4.1.1/kafka_2.13-4.1.1.jar
5b4a0a0cd0e751ded431c162442bdbdd53328d1f8bb2bae5fc1bbeee0f66d80f broker org/apache/logging/log4j/log4j-api/2.24.3/log4j-api-2.24.3.jar
7eb4084596ae25bd3c61698e48e8d0ab65a9260758884ed5cbb9c6e55c44a56a broker org/apache/logging/log4j/log4j-core/2.24.3/log4j-core-2.24.3.jar
d74a3334fb35195009b338a951f918203d6bbca3d1d359033dc33edd1cadc9ef broker org/lz4/lz4-java/1.8.0/lz4-java-1.8.0.jar
6b7a14a6f34c10f8683f7b5e2f39df0f07b58c7dff0e468ebbc713905c46979c broker com/yammer/metrics/metrics-core/2.2.0/metrics-core-2.2.0.jar
2bbeef5797a241300c4f7513cd546239629ed7deda4fc0c31df90bb95f5f13ef broker org/pcollections/pcollections/4.0.2/pcollections-4.0.2.jar
7b52c72156dd7f98b3237a5b35c1d34fba381b21048c89208913ad80a45dfbd7 broker com/google/re2j/re2j/1.8/re2j-1.8.jar
1ebb2b6f9e4eb4022497c19b1e1e825019c08514f962aaac197145f88ed730f1 broker org/scala-lang/scala-library/2.13.16/scala-library-2.13.16.jar
87a3017d3f43e6ace7566fe4c3d615134c6914ff871c8d64bb32ca1d996d0545 broker com/typesafe/scala-logging/scala-logging_2.13/3.9.5/scala-logging_2.13-3.9.5.jar
fb49ccd9cac7464486ab993cda20a3c1569d8ef26f052e897577ad2a4970fb1d broker org/scala-lang/scala-reflect/2.13.16/scala-reflect-2.13.16.jar
d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0 broker org/slf4j/slf4j-api/1.7.36/slf4j-api-1.7.36.jar
ef779af5d29a9dde8cc70ce0341f5c6f7735e23edff9685ceaa9d35359b7bb7f broker org/yaml/snakeyaml/2.4/snakeyaml-2.4.jar
4c766cb3f855415ee734b2392949a0b6f12a60879334a74518deaf6270d32e36 broker org/xerial/snappy/snappy-java/1.1.10.7/snappy-java-1.1.10.7.jar
b6c3237e24b8252a5a9c3a0e1ae30ef8f323412e74bd358548b7a9e527d676df broker com/github/luben/zstd-jni/1.5.6-10/zstd-jni-1.5.6-10.jar
64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705 connector org/apache/spark/spark-sql-kafka-0-10_2.13/4.2.0/spark-sql-kafka-0-10_2.13-4.2.0.jar
f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767 connector org/apache/spark/spark-token-provider-kafka-0-10_2.13/4.0.0/spark-token-provider-kafka-0-10_2.13-4.0.0.jar
5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef connector org/apache/commons/commons-pool2/2.12.1/commons-pool2-2.12.1.jar
7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9 connector org/apache/kafka/kafka-clients/3.9.1/kafka-clients-3.9.1.jar
JARS

# A project that depends on exactly the jars of one part, and on nothing that these would bring.
project() {
  local part path version artifact group
  echo "<project><modelVersion>4.0.0</modelVersion><groupId>weft</groupId><artifactId>$1</artifactId><version>1</version><dependencies>"
  while read -r _ part path; do
    [ "$part" = "$1" ] || continue
    version="$(basename "$(dirname "$path")")"
    artifact="$(basename "$(dirname "$(dirname "$path")")")"
    group="$(dirname "$(dirname "$(dirname "$path")")" | tr / .)"
    echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version>"
    echo "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
  done < "$work/jars"
  echo "</dependencies></project>"
}

for part in broker connector; do
  mkdir -p "$folder/$part" "$work/$part"
  project "$part" > "$work/$part/pom.xml"
  mvn -q -f "$work/$part/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/$part"
done
while read -r sum part path; do
  echo "$sum  $folder/$part/$(basename "$path")"
done < "$work/jars" | sha256sum --check --quiet
echo "Kafka is in $folder: set WEFT_KAFKA_JARS=$folder, and for your own streams WEFT_SPARK_JARS to the jars in $folder/connector"
